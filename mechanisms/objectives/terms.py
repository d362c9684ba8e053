"""What objectives of several terms ask of their members."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.objectives.objective import Objective


def common_candidates(members: Sequence[Objective]) -> str:
    """The one kind of candidates that all members rank; UnsupportedQuery when they differ."""
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
