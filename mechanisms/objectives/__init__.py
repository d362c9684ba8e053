"""Objectives: the rankings of candidates, by one utility or by several together.

A new objective is one class that implements ``Objective``, made of terms, and one line in
``OBJECTIVES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mechanisms.model.facts import ObjectiveFacts
from mechanisms.objectives.objective import ParallelObjective, RelativeObjective, Term
from mechanisms.objectives.pareto import Pareto
from mechanisms.objectives.single import SingleUtility
from mechanisms.objectives.weighted_sum import ExclusiveUtility, WeightedSum
from mechanisms.utilities.utility import Objective

__all__ = [
    "OBJECTIVES",
    "ExclusiveUtility",
    "Objective",
    "ObjectiveKind",
    "ParallelObjective",
    "Pareto",
    "RelativeObjective",
    "SingleUtility",
    "Term",
    "WeightedSum",
]


class ObjectiveKind(Protocol):
    """Makes an objective from its terms. Raises: UnsupportedQuery when they do not fit."""

    @property
    def facts(self) -> ObjectiveFacts:
        """The description for the catalogue."""
        ...

    def __call__(self, terms: Sequence[Term]) -> Objective: ...


#: By name in queries.
OBJECTIVES: dict[str, ObjectiveKind] = {
    "single": SingleUtility,
    "weighted_sum": WeightedSum,
    "pareto": Pareto,
}
