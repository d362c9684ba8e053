"""The sensitivity function of a weighted sum: the weighted sum of the members' own.

Members that one change cannot move together form one group, as its parts. In a group the largest
part replaces the sum. Both are admissible if every member is. Each member is capped separately,
which is at least as tight as capping the sum.

Source: Differentially Private Multi-Objective Selection, Theorems 5.3 and 5.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.model.sensitivity import Integers, SensitivityFunction
from mechanisms.utilities.rate_sensitivity import RateSensitivity


@dataclass(frozen=True)
class WeightedMember:
    """One member of a sum: its δ, the factor |W| of its weight, and its public cap in steps."""

    factor: int
    delta: SensitivityFunction
    cap: int

    def __post_init__(self) -> None:
        if self.delta.cap > self.cap:
            raise ValueError("the cap of δ lies above the cap of its grid")


#: Groups of parts of members: sums over groups and inside parts, the maximum over parts.
Groups = Sequence[Sequence[Sequence[WeightedMember]]]


@dataclass(frozen=True)
class SumSensitivity:
    """δ of ``count`` candidates; ``cap`` is the same combination of the members' caps."""

    groups: Groups
    cap: int
    horizon: int
    count: int

    def at(self, t: int, candidates: Integers) -> Integers:
        if t >= self.horizon:
            return np.full(candidates.shape, self.cap, dtype=np.int64)
        steps = np.zeros(candidates.shape, dtype=np.int64)
        for group in self.groups:
            steps += _group_at(group, t, candidates)
        return steps

    def largest(self, t: int) -> int:
        return int(self.at(t, np.arange(self.count)).max())

    def shortfall(self) -> Integers:
        short = np.zeros(self.count, dtype=np.int64)
        for group in self.groups:
            if len(group) == 1:
                for member in group[0]:
                    # δ of a member may stay below its public cap; it is constant after T.
                    gap = self.horizon * (member.cap - member.delta.cap)
                    short += member.factor * (member.delta.shortfall() + gap)
            else:
                short += self._missing(group)
        return short

    def _missing(self, group: Sequence[Sequence[WeightedMember]]) -> Integers:
        """The shortfall of a maximum. Its loop over t ends once every candidate is at the cap."""
        short = np.zeros(self.count, dtype=np.int64)
        cap, below_cap = group_cap(group), np.arange(self.count)
        for t in range(self.horizon):
            missing = cap - _group_at(group, t, below_cap)
            short[below_cap] += missing
            below_cap = below_cap[missing > 0]
            if not below_cap.size:
                break
        return short


def group_cap(group: Sequence[Sequence[WeightedMember]]) -> int:
    """Δ of a group, in steps."""
    return max(sum(member.factor * member.cap for member in part) for part in group)


def _group_at(group: Sequence[Sequence[WeightedMember]], t: int, candidates: Integers) -> Integers:
    parts = [
        sum(
            (member.factor * member.delta.at(t, candidates) for member in part),
            np.zeros(candidates.shape, dtype=np.int64),
        )
        for part in group
    ]
    steps: Integers = np.maximum.reduce(parts)
    return steps


def in_one_piece(sums: SumSensitivity) -> SensitivityFunction:
    """The same δ as one object if all members are single rates; otherwise ``sums`` itself.

    One object walks and sums its steps by runs. To compute δ(t) for one t at a time would be too
    slow for a dampened score of a rate, which takes up to as many steps as there are records.
    """
    members = [
        (part, member) for group in sums.groups for part, inside in enumerate(group)
        for member in inside
    ]  # fmt: skip
    rates = [member.delta for _, member in members if isinstance(member.delta, RateSensitivity)]
    # One group: its parts exclude one another. Several groups: each has one part, and they add up.
    exclusive_or_added = len(sums.groups) == 1 or all(len(group) == 1 for group in sums.groups)
    alone = all(len(part) == 1 for group in sums.groups for part in group)
    if len(rates) < len(members) or not (exclusive_or_added and alone):
        return sums
    rows = [
        (member.factor, rate.members[0, 1], member.cap, part)
        for (part, member), rate in zip(members, rates, strict=True)
    ]
    return RateSensitivity(
        hits=np.concatenate([rate.hits for rate in rates]),
        totals=np.concatenate([rate.totals for rate in rates]),
        members=np.array(rows, dtype=np.int64),
        replace=rates[0].replace,
        cap=sums.cap,
        horizon=sums.horizon,
    )
