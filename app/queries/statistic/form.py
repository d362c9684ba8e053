"""The form of a statistic: a variant is its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.contract.datasets import Facts
from app.queries.parts.form import FormField, KindForm, Option, parameters
from app.queries.statistic.body import ERROR, FIELDS, TARGETS, StatisticQuery
from mechanisms.statistics import STATISTICS
from mechanisms.statistics.validity import VALID

#: The parameters that only some statistics have.
OWN = frozenset(name for names in FIELDS.values() for name in names)


class StatisticForm(KindForm):
    body = StatisticQuery
    order = 60
    label = "Statistic"

    def fits(self, facts: Facts) -> bool:
        return bool(self.variants(facts))

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        """The statistics that some mechanism may release; those of numbers need one to be there."""
        return tuple(
            Option(name, kind.title, kind.description)
            for name, kind in STATISTICS.items()
            if _mechanisms(name, facts) and (facts.has_numbers or "attribute" not in FIELDS[name])
        )

    def start(self, variant: str) -> dict[str, Any]:
        return {"statistic": variant}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        for field in parameters(self.body):
            if field.name == "statistic" or field.name in OWN - {*FIELDS[variant]}:
                continue
            if field.name == "where":
                yield replace(field, widget="where")
            elif field.name == "mechanism":
                yield replace(field, schema={**field.schema, "enum": _mechanisms(variant, facts)})
            else:
                yield replace(field, required=field.required or field.name in OWN)

    def targets(self, variant: str) -> tuple[str, ...]:
        del variant
        return (ERROR, *TARGETS.values())


def _mechanisms(statistic: str, facts: Facts) -> list[str]:
    return [
        row.mechanism
        for row in VALID
        if row.statistic == statistic and facts.neighbouring in row.relations
    ]
