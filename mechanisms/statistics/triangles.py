"""The number of triangles, and of two-triangles: pairs of triangles on a common edge.

Adding or removing the edge {i, j} moves the number of triangles by the number a_ij of common
neighbours of i and j. After s such changes of edges, no pair has more common neighbours than

    U(s) = min(m, a_max + s, ⌊(s + σ) / 2⌋).

Here m is a public bound, a_max the largest a_ij, and σ the largest d_i + d_j − 2·A_ij of all pairs,
with degrees d and A_ij = 1 for an edge. One change moves a_max and σ by at most one each, which
proves U(s + 1) ≥ U'(s) for neighbours. U(s) is the exact local sensitivity LS(s) whenever one pair
attains both. The last term matters only at large distances.

LS(0) of two-triangles is prepared. At distance s ≥ 1 the bound is the smallest of three, each
admissible:

* LS(0) + Σ_{r < s} 4·(a_max + r): one change moves the local sensitivity by at most 4·a_max;
* C(Λ, 2) + 2Λ·Λₑ: no pair shares more than Λ(s) neighbours, no pair with an edge more than Λₑ(s);
* C(m, 2) + 2m(m − 1), the global sensitivity.

The often printed (5/2)·a_H is no bound, where a_H is the most triangles on one edge after an edge
is added. The complete graph of five nodes without an edge has LS 15, where (5/2)·a_H is 7.5.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from mechanisms.model.candidates import graph_domain
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.records import GraphRecords
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import most_second_order, most_shared, total
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import CoarseBound, SmoothMaximum
from mechanisms.statistics.statistic import Measurement, Part


@dataclass(frozen=True)
class TriangleLevels(SmoothMaximum):
    """The bound of triangles for largest local sensitivities. Implements ``DistanceBound``.

    The level of a graph is a_max, the most common neighbours of a pair. Levels of neighbours differ
    by at most one, so S = max over j ≥ 0 of min(m, a_max + j)·e^{−βj}, with m the public bound.
    """

    shared: int
    cap: int

    @property
    def reach(self) -> int:
        # The bound on the common neighbours of two nodes grows by at least one with every two
        # changes of edges, until it is ``cap``, the public maximum. So from 2·cap changes on it is
        # constant.
        return 2 * self.cap

    def at(self, distances: Integers) -> Integers:
        return np.minimum(self.shared + distances, self.cap)


@dataclass(frozen=True)
class TriangleBound(TriangleLevels):
    """The most common neighbours of any pair after s changes of edges, as a ``DistanceBound``."""

    degrees: int

    def at(self, distances: Integers) -> Integers:
        return np.minimum(super().at(distances), (self.degrees + distances) // 2)


@dataclass(frozen=True)
class Triangles(Part):
    """The number of triangles; its sensitivity is the most neighbours that two nodes may share."""

    name = "triangles"
    is_count = True
    title = "Triangles"
    description = "How many triangles the graph has."
    source = "Nissim, Raskhodnikova, Smith, 2007, section 3.3 (local sensitivity)"

    what = "number of triangles"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(most_shared(dataset), epsilon_nano)

    def reach(self, dataset: Dataset) -> int:
        return 2 * most_shared(dataset) + 2

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        graph, most = context.graph, most_shared(context.dataset)
        local = supports(graph, most)
        return Measurement(
            total(graph, "triangles") >> plan.exponent,
            local=CoarseBound(local, plan.exponent),
            levels=CoarseBound(TriangleLevels(local.shared, most), plan.exponent),
        )


def supports(graph: GraphRecords, most: int) -> TriangleBound:
    """Return the bound on common neighbours, from the prepared private totals."""
    totals = graph.totals
    shared = max(total(graph, "edge_maximum"), total(graph, "open_maximum"))
    degrees = int((totals["degree_pairs_high"] + totals["degree_pairs_low"]).max(initial=0))
    return TriangleBound(shared, most, degrees)


@dataclass(frozen=True)
class TwoTriangleBound(SmoothMaximum):
    """The bound on the local sensitivity of two-triangles, as a ``DistanceBound``.

    The module docstring derives it. No pair has more than ``nodes`` − 2 common neighbours.
    """

    flip: int
    nodes: int
    edge_maximum: int
    open_maximum: int
    supports: TriangleBound
    cap: int

    @property
    def reach(self) -> int:
        # From this number of changes on, ``at`` returns the global sensitivity. Each pair of nodes
        # may then share m neighbours, the most that the public bounds allow, and each pair with an
        # edge m − 1. So ``by_pairs`` there equals the global sensitivity, and ``by_steps``, which
        # adds up single changes, is larger.
        return self.supports.reach + 2

    def at(self, distances: Integers) -> Integers:
        by_steps = self.flip + 4 * self._sums(distances)
        pairs = self.supports.at(distances)
        edges = np.maximum(self.edge_maximum + distances, self.open_maximum + distances - 1)
        edges = np.minimum(edges, (self.supports.degrees + distances) // 2)
        edges = np.clip(edges, 0, max(self.supports.cap - 1, 0))
        by_pairs = pairs * (pairs - 1) // 2 + 2 * pairs * edges
        # At distance 0 the prepared local sensitivity is exact, so the bound by the common
        # neighbours of pairs of nodes is not used.
        by_pairs = np.where(distances == 0, by_steps, by_pairs)
        bound: Integers = np.minimum(np.minimum(by_steps, by_pairs), self.cap)
        return bound

    def _sums(self, distances: Integers) -> Integers:
        """Return Σ_{r < s} min(a_max + r, n − 2), with a_max of the module docstring, n nodes."""
        shared, most = self.supports.shared, max(self.nodes - 2, 0)
        rising = np.minimum(distances, max(most - shared, 0))
        below: Integers = rising * shared + rising * (rising - 1) // 2
        return below + (distances - rising) * most


@dataclass(frozen=True)
class TwoTriangleLevels(SmoothMaximum):
    """The bound of two-triangles for largest local sensitivities. Implements ``DistanceBound``.

    The level a_H is the most triangles on one edge once the best single edge is added. The local
    sensitivity is at most (5/2)·a_H·(a_H − 1), and levels of neighbours differ by at most one.
    """

    harvest: int
    cap: int

    @property
    def reach(self) -> int:
        # After r = ⌊√cap⌋ + 1 changes or more, the bound (5/2)·r·(r − 1) on the local sensitivity
        # is at least the global sensitivity ``cap``. So all further distances have the same bound.
        return isqrt(self.cap) + 1

    def at(self, distances: Integers) -> Integers:
        reached = np.minimum(self.harvest + distances, 1 << 30)
        bound: Integers = np.minimum(5 * reached * (reached - 1) // 2, self.cap)
        return bound


@dataclass(frozen=True)
class TwoTriangles(Part):
    """The global sensitivity is C(m, 2) + 2m(m − 1), m the most neighbours that two nodes share."""

    name = "two_triangles"
    is_count = True
    title = "Two-triangles"
    description = "How many pairs of triangles have an edge in common."
    source = "Karwa, Raskhodnikova, Smith, Yaroslavtsev, 2011 (k-triangles); bounds corrected"

    what = "number of two-triangles"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(global_sensitivity(most_shared(dataset)), epsilon_nano)

    def reach(self, dataset: Dataset) -> int:
        return 2 * most_shared(dataset) + 2

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        graph, dataset = context.graph, context.dataset
        most = most_shared(dataset)
        cap, pairs = global_sensitivity(most), supports(graph, most)
        flip = total(graph, "flip_maximum")
        maxima = total(graph, "edge_maximum"), total(graph, "open_maximum")
        flips = TwoTriangleBound(flip, graph_domain(dataset).nodes, *maxima, pairs, cap)
        return Measurement(
            total(graph, "two_triangles") >> plan.exponent,
            local=CoarseBound(flips, plan.exponent),
            levels=CoarseBound(TwoTriangleLevels(total(graph, "harvest"), cap), plan.exponent),
            support=(pairs.shared, flip, most_second_order(dataset)),
        )


def global_sensitivity(shared: int) -> int:
    """Return C(m, 2) + 2m(m − 1), the one of two-triangles, for m = ``shared`` neighbours."""
    return 5 * shared * max(shared - 1, 0) // 2
