"""The form of a tree: a variant is an algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.contract.datasets import Facts
from app.queries.parts.accuracy import SCORE_TARGET
from app.queries.parts.form import FormField, KindForm, Option, parameters
from app.queries.tree.body import ALGORITHMS, Tree


class TreeForm(KindForm):
    body = Tree
    order = 30
    datasets = frozenset({"table"})
    label = "Algorithm"

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        del facts
        return tuple(
            Option(name, body.title, body.description) for name, body in ALGORITHMS.items()
        )

    def start(self, variant: str) -> dict[str, Any]:
        return {"algorithm": variant}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        del facts
        yield from (one for one in parameters(ALGORITHMS[variant]) if one.name != "algorithm")

    def targets(self, variant: str) -> tuple[str, ...]:
        return (SCORE_TARGET, *ALGORITHMS[variant].further_targets)
