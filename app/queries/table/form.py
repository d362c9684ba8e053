"""The form of the query kind ``table``."""

from collections.abc import Iterator
from dataclasses import replace

from app.contract.datasets import Facts
from app.queries.parts.form import ADVANCED, FormField, KindForm, Option
from app.queries.table.parameters import OF_NUMBERS


class TableForm(KindForm):
    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        for field in super().fields(facts, variant):
            match field.name:
                case "by":
                    yield replace(field, widget="groups")
                case "aggregates":
                    yield replace(field, widget="measures", options=_measures(facts))
                case "delta":
                    # The field δ (delta) is always shown if an attribute with open values needs it.
                    # Otherwise the page folds it with the advanced fields.
                    yield replace(field, group="" if facts.has_open else ADVANCED)
                case "where":
                    yield replace(field, widget="where")
                case _:
                    yield field


def _measures(facts: Facts) -> tuple[Option, ...]:
    """The measures that fit the dataset, as "name:attribute"."""
    numbers = [one.name for one in facts.attributes if one.bounds is not None]
    return (
        Option("count", "number of records"),
        *([Option("persons", "number of persons")] if facts.has_persons else []),
        *(
            Option(f"{name}:{attribute}", f"{name} of {attribute}")
            for attribute in numbers
            for name in (*OF_NUMBERS, "quantiles")
        ),
    )
