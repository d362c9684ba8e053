"""The number of k-stars: a centre with k of its neighbours, Σ over nodes of C(d, k).

One flip of {i, j} moves it by C(d̄_i, k − 1) + C(d̄_j, k − 1), d̄ = d − A_ij. At distance s the best
use of s further edges gives them to the node of larger d̄ until it is full, then to the other:

    LS(s) = max over pairs of C(d̄_i + u, k − 1) + C(d̄_j + v, k − 1).

Only pairs that no other exceeds in both parts matter: a handful, prepared.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import graph_records, most_shared
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local import Coarse, smooth_maximum
from mechanisms.statistics.single import Single
from mechanisms.statistics.statistic import Measured

#: C(m, 3), twice, stays far inside 64 bits for every m that a graph of 32-bit nodes has.
LARGEST_SHARED = 1 << 20


@dataclass(frozen=True)
class Centres:
    """LS(s) from the Pareto pairs of degrees. Implements ``local.Walked``."""

    high: tuple[int, ...]
    low: tuple[int, ...]
    leaves: int
    most: int

    @property
    def cap(self) -> int:
        return 2 * comb(self.most, self.leaves - 1)

    def at(self, distances: Integers) -> Integers:
        best = np.zeros(distances.shape, dtype=np.int64)
        for high, low in zip(self.high, self.low, strict=True):
            # A node beyond the bound's reach cannot be flipped; the bound may count it as full.
            x, y = min(high, self.most), min(low, self.most)
            first = np.minimum(distances, self.most - x)
            second = np.minimum(distances - first, self.most - y)
            best = np.maximum(best, self._around(x + first) + self._around(y + second))
        return best

    def smooth(self, beta: float) -> float:
        return smooth_maximum(self, beta)

    def _around(self, degrees: Integers) -> Integers:
        """C(d, k − 1) of each."""
        around: Integers = degrees
        for j in range(1, self.leaves - 1):
            around = around * (degrees - j) // (j + 1)
        return np.maximum(around, 0)


@dataclass(frozen=True)
class Stars(Single):
    """GS = 2·C(m, k − 1), m the most further neighbours of a node that gains an edge."""

    name: ClassVar[str] = "stars"
    title: ClassVar[str] = "Stars"
    description: ClassVar[str] = (
        "How many stars of k leaves the graph has: Σ over nodes of C(d, k)."
    )
    source: ClassVar[str] = "Karwa, Raskhodnikova, Smith, Yaroslavtsev, 2011 (k-stars)"

    k: int
    what = "number of stars"

    def __post_init__(self) -> None:
        if not 2 <= self.k <= 4:
            raise ValueError("stars have two to four leaves")

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(2 * comb(_most(dataset), self.k - 1), epsilon_nano)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        plan: Plan,
        executor: Executor,  # noqa: ARG002 - one pass over the degrees
    ) -> Measured:
        totals = graph_records(records).totals
        degrees = np.bincount(graph_records(records).columns["degree"])
        value = sum(comb(d, self.k) * int(nodes) for d, nodes in enumerate(degrees) if nodes)
        high, low = (tuple(totals[f"degree_pairs_{part}"].tolist()) for part in ("high", "low"))
        local = Centres(high, low, self.k, _most(dataset))
        return Measured(value >> plan.exponent, local=Coarse(local, plan.exponent))


def _most(dataset: Dataset) -> int:
    most = most_shared(dataset)
    if most > LARGEST_SHARED:
        raise UnsupportedQuery(
            "stars are exact up to a public degree bound", supported={"max_degree": LARGEST_SHARED}
        )
    return most
