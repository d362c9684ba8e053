"""Members of objectives: terms with weights.

``Objective`` is the form of a utility: a public grid, and private utilities with their δ on that
grid. So a utility is an objective, an objective may be a member of another, and every selection
(top-k, trees, distance contexts) accepts any objective.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.utilities.utility import Objective


@dataclass(frozen=True)
class Term:
    """A member of an objective, with its weight if the objective has weights."""

    member: Objective
    weight: Decimal | None = None


def common_candidates(members: Sequence[Objective]) -> str:
    """The one kind of candidates that all members rank. Raises: UnsupportedQuery if kinds
    differ."""
    kinds = {member.candidates for member in members}
    if len(kinds) != 1:
        raise UnsupportedQuery(
            "the utilities of an objective rank the same kind of candidates",
            supported={"candidates": sorted(kinds)},
        )
    return kinds.pop()


def common_relations(members: Sequence[Objective]) -> frozenset[NeighbouringRelation]:
    """The relations under which every member is private."""
    return frozenset.intersection(*(member.relations for member in members))
