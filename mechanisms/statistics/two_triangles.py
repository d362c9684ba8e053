"""The number of two-triangles: pairs of triangles on a common edge, Σ over edges of C(a_e, 2).

LS(0) is prepared. At distance s ≥ 1 the bound is the smallest of three, each admissible:

* LS(0) + Σ_{r < s} 4·(a_max + r): one flip changes the local sensitivity by at most 4·a_max;
* C(Λ, 2) + 2Λ·Λₑ: no pair shares more than Λ(s) neighbours, and no edge more than Λₑ(s);
* GS = C(m, 2) + 2m(m − 1).

a_max is over all pairs, adjacent or not. The often printed (5/2)·a_H is no bound: the complete
graph of five nodes without an edge has LS 15, where it gives 7.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import most_shared, total
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import CoarseBound, SmoothMaximum
from mechanisms.statistics.single_part import SinglePart
from mechanisms.statistics.statistic import Measurement
from mechanisms.statistics.triangles import TriangleBound, supports


@dataclass(frozen=True)
class TwoTriangleBound(SmoothMaximum):
    """U(s) as above; ``nodes`` − 2 bounds a_max in every graph. Implements ``DistanceBound``."""

    flip: int
    nodes: int
    edge_maximum: int
    open_maximum: int
    supports: TriangleBound
    cap: int

    def at(self, distances: Integers) -> Integers:
        by_steps = self.flip + 4 * self._sums(distances)
        pairs = self.supports.at(distances)
        edges = np.maximum(self.edge_maximum + distances, self.open_maximum + distances - 1)
        edges = np.minimum(edges, (self.supports.degrees + distances) // 2)
        edges = np.clip(edges, 0, max(self.supports.cap - 1, 0))
        by_pairs = pairs * (pairs - 1) // 2 + 2 * pairs * edges
        # At s = 0 the prepared LS(0) is exact.
        by_pairs = np.where(distances == 0, by_steps, by_pairs)
        bound: Integers = np.minimum(np.minimum(by_steps, by_pairs), self.cap)
        return bound

    def _sums(self, distances: Integers) -> Integers:
        """Σ_{r < s} min(a_max + r, n − 2)."""
        shared, most = self.supports.shared, max(self.nodes - 2, 0)
        rising = np.minimum(distances, max(most - shared, 0))
        below: Integers = rising * shared + rising * (rising - 1) // 2
        return below + (distances - rising) * most


@dataclass(frozen=True)
class TwoTriangleLevels(SmoothMaximum):
    """Largest local sensitivities by the level a_H. Implements ``DistanceBound``.

    a_H is the most triangles on one edge once the best single edge is added. LS ≤ (5/2)·a_H·(a_H −
    1), and neighbours' levels differ by at most one.
    """

    harvest: int
    cap: int

    def at(self, distances: Integers) -> Integers:
        reached = np.minimum(self.harvest + distances, 1 << 30)
        bound: Integers = np.minimum(5 * reached * (reached - 1) // 2, self.cap)
        return bound


@dataclass(frozen=True)
class TwoTriangles(SinglePart):
    """GS = C(m, 2) + 2m(m − 1), m the most neighbours that two nodes may share."""

    name = "two_triangles"
    title = "Two-triangles"
    description = "How many pairs of triangles have an edge in common."
    source = "Karwa, Raskhodnikova, Smith, Yaroslavtsev, 2011 (k-triangles); bounds corrected"

    what = "number of two-triangles"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(global_sensitivity(most_shared(dataset)), epsilon_nano)

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        most = most_shared(dataset)
        cap, pairs = global_sensitivity(most), supports(records, most)
        flip = total(records, "flip_maximum")
        maxima = total(records, "edge_maximum"), total(records, "open_maximum")
        flips = TwoTriangleBound(flip, graph_domain(dataset).nodes, *maxima, pairs, cap)
        return Measurement(
            total(records, "two_triangles") >> plan.exponent,
            local=CoarseBound(flips, plan.exponent),
            levels=CoarseBound(TwoTriangleLevels(total(records, "harvest"), cap), plan.exponent),
            support=(pairs.shared, flip),
        )


def global_sensitivity(shared: int) -> int:
    """C(m, 2) + 2m(m − 1)."""
    return 5 * shared * max(shared - 1, 0) // 2
