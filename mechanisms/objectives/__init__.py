"""What candidates are ranked by: one utility, or several together.

A new objective is one class that implements ``Objective``, made of terms, and one line in
``OBJECTIVES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mechanisms.model.facts import ObjectiveFacts
from mechanisms.objectives.objective import Objective, Relative, Spread, Term
from mechanisms.objectives.pareto import Pareto
from mechanisms.objectives.single import Single
from mechanisms.objectives.weighted_sum import Exclusive, WeightedSum

__all__ = [
    "OBJECTIVES",
    "Exclusive",
    "Objective",
    "ObjectiveKind",
    "Pareto",
    "Relative",
    "Single",
    "Spread",
    "Term",
    "WeightedSum",
]


class ObjectiveKind(Protocol):
    """What makes an objective of its terms; UnsupportedQuery when they do not fit."""

    @property
    def facts(self) -> ObjectiveFacts:
        """What the catalogue says about it."""
        ...

    def __call__(self, terms: Sequence[Term]) -> Objective: ...


#: By name in queries.
OBJECTIVES: dict[str, ObjectiveKind] = {
    "single": Single,
    "weighted_sum": WeightedSum,
    "pareto": Pareto,
}
