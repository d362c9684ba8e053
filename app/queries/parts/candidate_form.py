"""The form of kinds that select: a variant is a kind of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from app.contract.datasets import Facts
from app.queries.parts.accuracy import SCORE_TARGET
from app.queries.parts.candidates import CANDIDATES
from app.queries.parts.form import FormField, KindForm, Option, parameters
from mechanisms.model.candidates import AllNodes
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Utility


class CandidateForm(KindForm):
    """Candidates first, then the utilities that compare them, then all other parameters."""

    label: ClassVar[str] = "Candidates"

    def fits(self, facts: Facts) -> bool:
        return bool(self.variants(facts))

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        return tuple(
            Option(kind, kind, description)
            for kind, (_, description) in CANDIDATES.items()
            if _utilities(kind, facts)
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
        options = tuple(
            Option(one.name, one.title, one.description) for one in _utilities(variant, facts)
        )
        yield FormField("utilities", required=True, widget="utilities", options=options)
        for field in parameters(self.body):
            if field.name not in ("candidates", "utilities"):
                yield field

    def targets(self, variant: str) -> tuple[str, ...]:
        del variant
        return (SCORE_TARGET,)


def _utilities(kind: str, facts: Facts) -> list[Utility]:
    """The utilities of a kind of candidates that the relation of the dataset admits."""
    return [
        one
        for one in UTILITIES.values()
        if one.candidates == kind and facts.neighbouring in one.relations
    ]
