"""The number of k-stars: a centre with k of its neighbours, Σ over nodes of C(degree, k).

A change of the edge {i, j} moves it by C(d̄_i, k − 1) + C(d̄_j, k − 1), where d̄ is the degree
without that edge. At distance s the largest change gives u of s further edges to the node of larger
d̄, until it has the most neighbours, and the other v to the second node:

    LS(s) = max over pairs of C(d̄_i + u, k − 1) + C(d̄_j + v, k − 1).

Only pairs that no other pair exceeds in both degrees matter. These are prepared, and there are at
most three. Let d₁ ≥ d₂ be the two largest degrees; their nodes have a pair of at least d₁ − 1 and
d₂ − 1. Another pair must exceed it in one part, so its first part is d₁ or its second is d₂.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from mechanisms.model.candidates import graph_domain
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.work import Work, work
from mechanisms.noise.addition import Integers
from mechanisms.statistics.graphs import most_shared
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import CoarseBound, SmoothMaximum
from mechanisms.statistics.statistic import Measurement, Part

#: The largest supported public bound m on the other neighbours of a node at one end of an edge. Up
#: to this m, the global sensitivity 2·C(m, 3) of the number of stars with four leaves is far below
#: 2⁶³.
LARGEST_SHARED = 1 << 20
#: The local sensitivity of the number of stars follows from the degrees of at most this many pairs
#: of nodes. How many pairs it needs is private, so this many are always read.
MOST_PAIRS = 3


@dataclass(frozen=True)
class StarBound(SmoothMaximum):
    """The local sensitivity at every distance, from prepared pairs of degrees, as a
    ``DistanceBound``."""

    high: tuple[int, ...]
    low: tuple[int, ...]
    leaves: int
    most: int

    @property
    def cap(self) -> int:
        return 2 * comb(self.most, self.leaves - 1)

    @property
    def reach(self) -> int:
        # ``most`` is the public bound on the other neighbours of a node. After twice as many
        # changes both nodes of a pair can have the most neighbours. From this distance on, the
        # bound on the local sensitivity is the global sensitivity.
        return 2 * self.most

    def at(self, distances: Integers) -> Integers:
        best = np.zeros(distances.shape, dtype=np.int64)
        for high, low in zip(self.high, self.low, strict=True):
            # A node with more neighbours than ``most`` gains no edge, so it counts as a node with
            # ``most`` neighbours.
            x, y = min(high, self.most), min(low, self.most)
            first = np.minimum(distances, self.most - x)
            second = np.minimum(distances - first, self.most - y)
            best = np.maximum(best, self._around(x + first) + self._around(y + second))
        return best

    def _around(self, degrees: Integers) -> Integers:
        """Return C(d, k − 1) for each degree d and stars of k leaves."""
        around: Integers = degrees
        for j in range(1, self.leaves - 1):
            around = around * (degrees - j) // (j + 1)
        return np.maximum(around, 0)


@dataclass(frozen=True)
class Stars(Part):
    """The number of k-stars, whose global sensitivity is 2·C(m, k − 1).

    m is the most further neighbours of a node that gains an edge.
    """

    name = "stars"
    is_count = True
    title = "Stars"
    description = "How many stars of k leaves the graph has: Σ over nodes of C(d, k)."
    source = "Karwa, Raskhodnikova, Smith, Yaroslavtsev, 2011 (k-stars)"

    k: int
    what = "number of stars"

    def __post_init__(self) -> None:
        if not 2 <= self.k <= 4:
            raise ValueError("stars have two to four leaves")

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        return whole_plan(2 * comb(_most(dataset), self.k - 1), epsilon_nano)

    def work(self, dataset: Dataset) -> Work:
        domain = graph_domain(dataset)
        return work("degrees", domain.nodes + 100 * domain.max_degree)

    def terms(self, dataset: Dataset, plan: Plan, beta: float | None) -> int:
        return MOST_PAIRS * super().terms(dataset, plan, beta)

    def reach(self, dataset: Dataset) -> int:
        return 2 * _most(dataset)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        graph = context.graph
        # The sum has one term for every possible degree, even if no node has it, so that the run
        # time reveals no degree.
        most = graph_domain(context.dataset).max_degree
        nodes = np.bincount(graph.columns["degree"], minlength=most + 1)
        value = sum(comb(d, self.k) * count for d, count in enumerate(nodes.tolist()))
        high, low = (_padded(graph.totals[f"degree_pairs_{end}"]) for end in ("high", "low"))
        local = StarBound(high, low, self.k, _most(context.dataset))
        return Measurement(value >> plan.exponent, local=CoarseBound(local, plan.exponent))


def _padded(degrees: Integers) -> tuple[int, ...]:
    """The degrees in ``MOST_PAIRS`` places: how many pairs decide is private.

    Two nodes without edges, in the places that remain, exceed no pair.
    """
    empty = np.zeros(MOST_PAIRS - degrees.size, np.int64)
    return tuple(np.concatenate([degrees, empty]).tolist())


def _most(dataset: Dataset) -> int:
    most = most_shared(dataset)
    if most > LARGEST_SHARED:
        raise UnsupportedQuery(
            "stars are exact up to a public degree bound", supported={"max_degree": LARGEST_SHARED}
        )
    return most
