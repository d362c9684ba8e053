"""The sensitivity function of a weighted sum: the weighted sum of the members' own.

Members that one change cannot move together form one group, as its parts. In a group the largest
part replaces the sum. Both are admissible if every member is. Each member is capped separately,
which is at least as tight as capping the sum.

Source: Differentially Private Multi-Objective Selection, Theorems 5.3 and 5.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from mechanisms.kernels.spans import weighted_sums
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers, SensitivityFunction
from mechanisms.utilities.covering import ClosedForm, Stepwise
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


#: The members of a weighted sum, the utilities that it adds, form groups, and each group has parts.
#: One change of the records moves only one part of a group, so δ of a group is the largest δ of its
#: parts. δ of a part adds up its members, and δ of the sum adds up its groups.
Groups = Sequence[Sequence[Sequence[WeightedMember]]]


def _steps_of(self: "SumSensitivity") -> int:
    """A bound on the lines that a call runs: some per distance up to the horizon and per member."""
    return (self.horizon + 2) * (4 + 2 * len(list(chain(*chain(*self.groups)))))


@dataclass(frozen=True)
class SumSensitivity(Stepwise):
    """δ of ``count`` candidates; ``cap`` is the same combination of the members' caps."""

    groups: Groups
    cap: int
    horizon: int
    count: int
    #: The loop over distances t ends once δ(0) + … + δ(t) covers every utility. It does not go on
    #: to the horizon, the distance from which δ equals its cap, which may be as far as the number
    #: of records. Danger: the number of rounds depends on the records.
    ends_early = True

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        steps = _combined(self.groups, lambda delta: delta.at(t, candidates))  # type: ignore[arg-type]
        return np.where(np.less(t, self.horizon), steps, self.cap)

    def largest(self, t: int) -> int:
        if t >= self.horizon:
            return self.cap
        return int(_combined(self.groups, lambda delta: np.array(delta.largest(t))))

    @follows_records("passes end once every goal is covered", _steps_of)
    def passed(self, goals: Integers) -> Integers:
        return Stepwise.passed(self, goals)

    @follows_records("passes end once every goal is covered", _steps_of)
    def passed_by_largest(self, goals: Integers) -> Integers:
        return Stepwise.passed_by_largest(self, goals)

    def shortfall(self) -> Integers:
        short = np.zeros(self.count, dtype=np.int64)
        for group in self.groups:
            if len(group) == 1:
                for member in group[0]:
                    # A score in the mode ``shifted`` adds up cap − δ(t), where the cap is the
                    # public bound on δ of the member. It does so over all distances t below the
                    # horizon, from which on δ of the sum equals its cap. ``shortfall`` of the
                    # member takes the largest value of its δ in place of the cap. That may be less,
                    # so the difference is added once per distance.
                    gap = self.horizon * (member.cap - member.delta.cap)
                    short += member.factor * (member.delta.shortfall() + gap)
            else:
                everyone, cap = np.arange(self.count), group_cap(group)
                for t in range(self.horizon):
                    short += cap - _combined([group], lambda delta: delta.at(t, everyone))  # noqa: B023
        return short


@dataclass(frozen=True)
class ClosedSum(ClosedForm, SumSensitivity):
    """The same where sums of every member are closed and all members add up."""

    at = SumSensitivity.at

    def before(self, t: Integers) -> Integers:
        return weighted_sums(
            [
                (member.factor, member.delta.before(t))
                for (part,) in self.groups
                for member in part
                if isinstance(member.delta, ClosedForm)
            ]
        )

    def widest(self, t: Integers) -> Integers:
        steps = _combined(self.groups, lambda delta: delta.widest(t))  # type: ignore[attr-defined]
        return np.where(t < self.horizon, steps, self.cap)


def group_cap(group: Sequence[Sequence[WeightedMember]]) -> int:
    """Δ of a group, in steps."""
    return max(sum(member.factor * member.cap for member in part) for part in group)


def _combined(groups: Groups, of: Callable[[SensitivityFunction], Integers]) -> Integers:
    """The sum over groups of the largest part, each a sum of factors times ``of`` a member's δ."""
    nothing = np.zeros((), dtype=np.int64)
    steps: Integers = nothing
    for group in groups:
        parts = [sum((m.factor * of(m.delta) for m in part), nothing) for part in group]
        steps = steps + np.maximum.reduce(parts)
    return steps


def in_one_piece(sums: SumSensitivity) -> SensitivityFunction:
    """The same δ in the form that takes the fewest steps.

    If all members are single rates, one object walks its steps by runs. To compute δ(t) for one t
    at a time would be too slow for a dampened score of a rate, which takes up to as many steps as
    there are records. If all members have closed sums and add up, so has the sum.
    """
    members = [
        (part, member) for group in sums.groups for part, inside in enumerate(group)
        for member in inside
    ]  # fmt: skip
    rates = [member.delta for _, member in members if isinstance(member.delta, RateSensitivity)]
    added = all(len(group) == 1 for group in sums.groups)
    # If all members are rates of trees, one ``RateSensitivity`` can compute δ of the sum in two
    # cases. Either all parts are in one group, so that one change of the records moves only one of
    # them. Or every group has one part, so that the δ of all parts add up.
    exclusive_or_added = len(sums.groups) == 1 or added
    alone = all(len(part) == 1 for group in sums.groups for part in group)
    if added and all(isinstance(member.delta, ClosedForm) for _, member in members):
        return ClosedSum(sums.groups, sums.cap, sums.horizon, sums.count)
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
