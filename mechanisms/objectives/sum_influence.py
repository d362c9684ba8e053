"""The joint influence of a weighted sum, from the influence of its members.

On graphs the changes of inner nodes add up by sign, each times its weight. Under the global
sensitivity this bounds the score; under the other two, only where δ of every member follows from
the degree. On tables all scores move one way if every member does and no weight turns one around.
The same holds for trees.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.joint_influence import Independent, JointInfluence
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.edge_influence import edge_influence, inner_units
from mechanisms.utilities.utility import (
    EdgeUtility,
    Grid,
    InnerChange,
    Objective,
    OneWayUtility,
    both_ways,
)

#: A member of a weighted sum is a utility, a factor, and the grid of the utility, which fixes the
#: size of its steps. One step of the utility counts as this factor in steps of the sum.
Member = tuple[Objective, int, Grid]


def sum_influence(
    members: Sequence[Member],
    dataset: Dataset,
    candidates: Candidates,
    sensitivity: Sensitivity,
    grid: Grid,
    score_bits: int,
) -> JointInfluence:
    """The joint influence of scores of the sum; ``grid`` is that of the sum."""
    if all(isinstance(member, EdgeUtility) for member, _, _ in members):
        change = _inner_change(members, dataset, sensitivity)
        if change is None:
            return both_ways(dataset, candidates, score_bits)
        if sensitivity is Sensitivity.LOCAL:
            return inner_units(dataset, change, score_bits)
        return edge_influence(dataset, change, grid.cap, score_bits)
    if _one_way(members, dataset, sensitivity):
        return Independent(candidates.count(dataset), 1 << score_bits, both_ways=False)
    return both_ways(dataset, candidates, score_bits)


def _inner_change(
    members: Sequence[Member], dataset: Dataset, sensitivity: Sensitivity
) -> InnerChange | None:
    """The change of the sum of an inner node, or None where its δ may change as well."""
    fall, rise = 0, 0
    for member, factor, own in members:
        assert isinstance(member, EdgeUtility)
        if sensitivity is not Sensitivity.GLOBAL and not member.depends_on_degree(sensitivity):
            return None
        change = member.inner_change(dataset, own)
        falls, rises = (change.fall, change.rise) if factor > 0 else (change.rise, change.fall)
        fall, rise = fall + abs(factor) * falls, rise + abs(factor) * rises
    return InnerChange(fall, rise)


def _one_way(members: Sequence[Member], dataset: Dataset, sensitivity: Sensitivity) -> bool:
    """True if a record moves every term of the sum, weight included, in one and the same way.

    Beyond the global sensitivity only utilities of constant δ are one-way. Then δ of the sum is
    constant too, and its scores move as the sum does.
    """
    signs = set()
    for member, factor, _ in members:
        if not isinstance(member, OneWayUtility):
            return False
        sign = member.one_way(dataset.neighbouring, sensitivity)
        signs.add(sign if factor > 0 else -sign)
    return len(signs) == 1 and 0 not in signs
