"""The number of triangles.

One flip of {i, j} moves it by the common neighbours a_ij. At distance s,

    U(s) = min(m, a_max + s, ⌊(s + σ) / 2⌋),

with a_max and σ = max d_i + d_j − 2·A_ij over all pairs, adjacent or not. Each of a_max and σ moves
by at most one with a flip, which proves U(s + 1) ≥ U'(s). It is the exact LS(s) whenever one pair
attains both; without the last term it would be larger only far out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import graph_records, most_shared, total
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local import Coarse, smooth_maximum
from mechanisms.statistics.single import Single
from mechanisms.statistics.statistic import Measured


@dataclass(frozen=True)
class Supports:
    """The most common neighbours of any pair ``s`` flips away. Implements ``local.Walked``."""

    shared: int
    degrees: int
    cap: int

    def at(self, distances: Integers) -> Integers:
        reached = np.minimum(self.shared + distances, (self.degrees + distances) // 2)
        return np.minimum(reached, self.cap)

    def smooth(self, beta: float) -> float:
        return smooth_maximum(self, beta)


@dataclass(frozen=True)
class Levels:
    """Largest local sensitivities: the level is a_max, and neighbours' levels differ by at most
    one, so S = max over j ≥ 0 of min(m, a_max + j)·e^{−βj}. Implements ``local.Walked``."""

    shared: int
    cap: int

    def at(self, distances: Integers) -> Integers:
        return np.minimum(self.shared + distances, self.cap)

    def smooth(self, beta: float) -> float:
        return smooth_maximum(self, beta)


@dataclass(frozen=True)
class Triangles(Single):
    """GS = m, the most neighbours that two nodes may share."""

    name: ClassVar[str] = "triangles"
    title: ClassVar[str] = "Triangles"
    description: ClassVar[str] = "How many triangles the graph has."
    source: ClassVar[str] = "Nissim, Raskhodnikova, Smith, 2007, section 3.3 (local sensitivity)"

    what = "number of triangles"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(most_shared(dataset), epsilon_nano)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        plan: Plan,
        executor: Executor,  # noqa: ARG002 - the totals are prepared
    ) -> Measured:
        most = most_shared(dataset)
        local = supports(records, most)
        return Measured(
            total(records, "triangles") >> plan.exponent,
            local=Coarse(local, plan.exponent),
            levels=Coarse(Levels(local.shared, most), plan.exponent),
        )


def supports(records: Records, most: int) -> Supports:
    """U of triangles from prepared totals."""
    totals = graph_records(records).totals
    shared = max(total(records, "edge_maximum"), total(records, "open_maximum"))
    degrees = int((totals["degree_pairs_high"] + totals["degree_pairs_low"]).max(initial=0))
    return Supports(shared, degrees, most)
