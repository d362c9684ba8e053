"""The form of the query kind ``statistic``. A variant is the name of a statistic."""

from collections.abc import Iterator
from dataclasses import replace

from app.contract.datasets import Facts
from app.queries.parts.form import ADVANCED, FormField, KindForm, Option
from app.queries.statistic.body import ERROR, FIELDS, OWN, RANK_ERROR
from mechanisms.statistics import STATISTICS
from mechanisms.statistics.validity import VALID


class StatisticForm(KindForm):
    def variants(self, facts: Facts) -> tuple[Option, ...]:
        """Returns the statistics that fit. Some need a numeric attribute in the dataset."""
        return tuple(
            Option(name, kind.title, kind.description)
            for name, kind in STATISTICS.items()
            if _mechanisms(name, facts) and (facts.has_numbers or "attribute" not in FIELDS[name])
        )

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        for field in super().fields(facts, variant):
            if field.name == "where" and "where" in FIELDS[variant]:
                yield replace(field, widget="where")
            elif field.name == "mechanism":
                schema = {**field.schema, "enum": _mechanisms(variant, facts)}
                yield replace(field, schema=schema)
            elif field.name == "delta":
                # The field δ (delta) is always shown if the recommended mechanism needs it.
                # Otherwise the page folds it with the advanced fields.
                yield replace(field, group="" if _needs_delta(variant, facts) else ADVANCED)
            elif field.name in FIELDS[variant]:
                yield replace(field, required=True)
            elif field.name not in OWN:
                yield field

    def targets(self, variant: str) -> tuple[str, ...]:
        """Returns the error of the value, or of the rank where a mechanism bounds that instead."""
        ranked = any(row.mechanism == "exponential" for row in VALID if row.statistic == variant)
        return (RANK_ERROR,) if ranked else (ERROR,)


def _mechanisms(statistic: str, facts: Facts) -> list[str]:
    return [
        row.mechanism
        for row in VALID
        if row.statistic == statistic and facts.neighbouring in row.relations
    ]


def _needs_delta(statistic: str, facts: Facts) -> bool:
    return any(
        row.delta and row.recommended
        for row in VALID
        if row.statistic == statistic and facts.neighbouring in row.relations
    )
