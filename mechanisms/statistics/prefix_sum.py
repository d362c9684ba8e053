"""The sum of the first k values of a sorted public list, where the cut-off k is private.

Danger: this does not protect a table whose rows are the list, because the values are public.
Neighbours differ by one in k.
"""

from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import accumulate
from math import exp

import numpy as np

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, PrefixDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import PrefixRecords, records_of
from mechanisms.model.work import Work, work
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import Plan, real_exponent
from mechanisms.statistics.statistic import Measurement, Part
from mechanisms.statistics.tables import on_grid


@dataclass(frozen=True)
class CutOffBound:
    """The smooth bound max over cut-offs j of LS(j)·e^{−β|j − k|} at the private cut-off k.

    ``changes`` lists LS(j), the local sensitivity at each cut-off. Implements ``SmoothBound``.
    """

    changes: Integers
    cutoff: int

    def smooth(self, beta: float) -> float:
        distances = np.abs(np.arange(len(self.changes)) - self.cutoff)
        return float((np.exp(-beta * distances) * self.changes).max())


@dataclass(frozen=True)
class CutOffLevels:
    """The bound for the mechanism of largest local sensitivities. Implements ``SmoothBound``.

    All cut-offs of equal local sensitivity form one level. Levels of neighbouring cut-offs have
    distance 1, and other distances are lengths of shortest paths.
    """

    changes: Integers
    cutoff: int

    def smooth(self, beta: float) -> float:
        cutoffs = np.arange(len(self.changes))
        return level_bound(self.changes, cutoffs[:-1], cutoffs[1:], exp(beta), self.cutoff)


@dataclass(frozen=True)
class SmallestSum(Part):
    """The sum of the public values s_1 … s_k up to the private cut-off k.

    Its local sensitivity is max(|s_k|, |s_{k + 1}|). The global one is the largest |s_i|, public.
    """

    name = "smallest_sum"
    title = "Sum of the smallest"
    description = (
        "The sum of the public values up to the private cut-off. It protects the cut-off alone, by "
        "one step: not the values, nor anyone whose values they are."
    )
    source = "Canard, Olivier, Quertier 2017, Examples 5 and 14; corrected"

    what = "sum of the smallest values"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        values = _values(dataset)
        largest = max(abs(Fraction(values[0])), abs(Fraction(values[-1])))
        if not largest:
            return Plan(0, 0)
        exponent = real_exponent(largest, epsilon_nano)
        ends = on_grid(np.array([values[0], values[-1]]), exponent)
        return Plan(exponent, int(np.abs(ends).max()))

    def excess(self, dataset: Dataset, plan: Plan) -> Fraction:
        """Each value is rounded down by less than a step."""
        return len(_values(dataset)) * plan.step if plan.cap else Fraction(0)

    def reach(self, dataset: Dataset) -> int:
        return len(_values(dataset))

    def terms(self, dataset: Dataset, plan: Plan, beta: float | None) -> int:
        return self.reach(dataset) + 1

    def work(self, dataset: Dataset) -> Work:
        return work("public values", len(_values(dataset)))

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        cutoff = records_of(PrefixRecords, context.records).cutoff
        values = on_grid(np.array(_values(context.dataset)), plan.exponent)
        changes = local_changes(values)
        return Measurement(
            # The summed values are public, and so are their sums up to every cut-off. Only the
            # cut-off at which the list of sums is read is private.
            list(accumulate(values.tolist(), initial=0))[cutoff],
            local=CutOffBound(changes, cutoff),
            levels=CutOffLevels(changes, cutoff),
        )


def local_changes(values: Integers) -> Integers:
    """Return the local sensitivity at each cut-off: the larger value that a step adds or drops."""
    sizes = np.concatenate(([0], np.abs(values), [0]))
    changes: Integers = np.maximum(sizes[:-1], sizes[1:])
    return changes


def level_bound(
    changes: Integers, ones: Integers, others: Integers, growth: float, member: int
) -> float:
    """Return max over levels l of LS_l·growth^{−d(l, level of ``member``)}.

    ``changes`` is the local sensitivity LS of every dataset; ``ones[i]`` and ``others[i]`` are
    neighbours. Dijkstra's algorithm with products runs from all levels to the one of the member.
    A path to a sensitive level may cross a less sensitive one. The published algorithm omits such
    paths.
    """
    sizes, level = np.unique(changes, return_inverse=True)
    beside: list[set[int]] = [set() for _ in sizes]
    for one, other in zip(level[ones].tolist(), level[others].tolist(), strict=True):
        beside[one].add(other)
        beside[other].add(one)
    bounds = sizes.astype(float).tolist()
    heap = [(-bound, place) for place, bound in enumerate(bounds)]
    heapify(heap)
    # Danger: ``member``, the true dataset, is private. The bounds of all levels are computed, a
    # level being all datasets of equal local sensitivity, although only the bound of ``member`` is
    # returned. If the loop stopped at its level, the run time would reveal it.
    while heap:
        bound, place = heappop(heap)
        if -bound < bounds[place]:
            continue
        for other in beside[place]:
            if -bound / growth > bounds[other]:
                bounds[other] = -bound / growth
                heappush(heap, (bound / growth, other))
    return float(bounds[int(level[member])])


def _values(dataset: Dataset) -> tuple[float, ...]:
    if not isinstance(dataset.domain, PrefixDomain):
        raise UnsupportedQuery(
            "this statistic is of public lists with a private cut-off",
            supported={"neighbouring": "prefix"},
        )
    return dataset.domain.public_values
