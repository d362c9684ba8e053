"""The form of the query kind ``table``."""

from collections.abc import Iterator
from dataclasses import replace

from app.contract.datasets import Facts
from app.queries.parts.form import FormField, KindForm


class TableForm(KindForm):
    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        for field in super().fields(facts, variant):
            yield replace(field, widget="where") if field.name == "where" else field
