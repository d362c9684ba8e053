"""The form of the query kinds that select candidates. A variant is a kind of candidates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.contract.datasets import Facts
from app.queries.parts.candidates import CANDIDATES, utilities_of
from app.queries.parts.form import FormField, KindForm, Option
from mechanisms.model.candidates import AllNodes
from mechanisms.model.table_candidates import ValuesOf


@dataclass(frozen=True)
class CandidateForm(KindForm):
    """Shows the candidates first, then the utilities that compare them, then all other fields."""

    choice: str = "candidates"

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        return tuple(
            Option(kind, kind, description)
            for kind, (_, description) in CANDIDATES.items()
            if utilities_of(kind, facts.neighbouring)
        )

    def start(self, variant: str) -> dict[str, Any]:
        return {} if variant == AllNodes.kind else {"candidates": {}}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        body, _ = CANDIDATES[variant]
        schema = body.model_json_schema()
        required = schema.get("required", [])
        for name, parameter in schema["properties"].items():
            if name != "nodes":
                path, definitions = f"candidates.{name}", schema.get("$defs", {})
                yield FormField(path, parameter, name in required, definitions)
        comparing = utilities_of(variant, facts.neighbouring)
        options = tuple(Option(one.name, one.title, one.description) for one in comparing)
        yield FormField("utilities", required=True, widget="utilities", options=options)
        for field in super().fields(facts, variant):
            # The form shows δ (delta) only for the values of an open attribute. They are private,
            # so releasing one needs a δ; all other candidates are public.
            is_open = facts.has_open and variant == ValuesOf.kind
            if field.name != "utilities" and (is_open or field.name != "delta"):
                yield field
