"""The number of triangles.

One flip of {i, j} moves it by the common neighbours a_ij. At distance s,

    U(s) = min(m, a_max + s, ⌊(s + σ) / 2⌋),

with a_max and σ = max d_i + d_j − 2·A_ij over all pairs, adjacent or not. A flip moves each of
a_max and σ by at most one, which proves U(s + 1) ≥ U'(s). U(s) is the exact LS(s) whenever one pair
attains both. The last term matters only at large distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import GraphRecords, Records, records_of
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import most_shared, total
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import CoarseBound, SmoothMaximum
from mechanisms.statistics.single_part import SinglePart
from mechanisms.statistics.statistic import Measurement


@dataclass(frozen=True)
class TriangleBound(SmoothMaximum):
    """The most common neighbours of any pair after ``s`` flips. Implements ``DistanceBound``."""

    shared: int
    degrees: int
    cap: int

    def at(self, distances: Integers) -> Integers:
        reached = np.minimum(self.shared + distances, (self.degrees + distances) // 2)
        return np.minimum(reached, self.cap)


@dataclass(frozen=True)
class TriangleLevels(SmoothMaximum):
    """Largest local sensitivities. Implements ``DistanceBound``.

    The level is a_max, and neighbours' levels differ by at most one, so S = max over j ≥ 0 of
    min(m, a_max + j)·e^{−βj}.
    """

    shared: int
    cap: int

    def at(self, distances: Integers) -> Integers:
        return np.minimum(self.shared + distances, self.cap)


@dataclass(frozen=True)
class Triangles(SinglePart):
    """GS = m, the most neighbours that two nodes may share."""

    name = "triangles"
    title = "Triangles"
    description = "How many triangles the graph has."
    source = "Nissim, Raskhodnikova, Smith, 2007, section 3.3 (local sensitivity)"

    what = "number of triangles"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(most_shared(dataset), epsilon_nano)

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        most = most_shared(dataset)
        local = supports(records, most)
        return Measurement(
            total(records, "triangles") >> plan.exponent,
            local=CoarseBound(local, plan.exponent),
            levels=CoarseBound(TriangleLevels(local.shared, most), plan.exponent),
        )


def supports(records: Records, most: int) -> TriangleBound:
    """U of triangles from prepared totals."""
    totals = records_of(GraphRecords, records).totals
    shared = max(total(records, "edge_maximum"), total(records, "open_maximum"))
    degrees = int((totals["degree_pairs_high"] + totals["degree_pairs_low"]).max(initial=0))
    return TriangleBound(shared, degrees, most)
