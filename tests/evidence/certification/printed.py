"""Formulas as the papers print them, for the checks to reject. The service uses none of them.

Values are rationals; ``tabulated`` puts them on a common integer grid for the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from tests.evidence.certification.checks import Array
from tests.evidence.certification.graphs import Graph

Utility = Callable[[Graph, int], Fraction]
Rule = Callable[[Fraction, Sequence[Fraction]], Fraction]
Delta = Callable[[Graph, int, int, int], Fraction]


def steps(value: int) -> Fraction:
    """g(k) = max(k(k − 1)/4, k)."""
    return max(Fraction(value * (value - 1), 4), Fraction(value))


def density_lemma_7_2(graph: Graph, v: int, t: int, max_degree: int) -> Fraction:  # noqa: ARG001
    """PrivPareto, Lemma 7.2: 2/(d − t − 2) while it is positive, then 1. It is 2 at d − t = 3."""
    room = graph[v].bit_count() - t - 2
    return Fraction(2, room) if room > 0 else Fraction(1)


def density_lemma_7_2_clamped(graph: Graph, v: int, t: int, max_degree: int) -> Fraction:
    return min(density_lemma_7_2(graph, v, t, max_degree), Fraction(1))


def betweenness_lemma_5_2(max_degree: int) -> Fraction:
    """Local Dampening, Lemma 5.2: Δ = max(D(D − 1)/4, D), although a full node cannot gain."""
    return steps(max_degree)


def betweenness_definition_5_3(graph: Graph, v: int, t: int, max_degree: int) -> Fraction:
    """Local Dampening, Definition 5.3, capped by the Δ of Lemma 5.2."""
    return min(steps(graph[v].bit_count() + t), betweenness_lemma_5_2(max_degree))


def betweenness_linear_half(graph: Graph, v: int, t: int, max_degree: int) -> Fraction:
    """A variant that no paper prints: the degree without the quadratic half. It must fail too."""
    return Fraction(min(graph[v].bit_count() + t, max_degree - 1))


def betweenness_observed_degree(graph: Graph, v: int, t: int, max_degree: int) -> Fraction:  # noqa: ARG001
    """Definition 5.3 with the largest degree seen in the graph in place of a public bound."""
    observed = max(mask.bit_count() for mask in graph)
    return steps(min(graph[v].bit_count() + t, observed - 1)) if observed else Fraction(0)


def dampened_as_printed(utility: Fraction, delta: Sequence[Fraction]) -> Fraction:
    """Local Dampening, Definition 3.6, half-open intervals [b_i, b_{i+1}) mirrored around 0.

    If δ starts with k zeros, the first non-empty interval is the k-th, so D = k at u = 0. Beyond
    the sequence δ keeps its last value.
    """
    below, i = Fraction(0), 0
    while True:
        width = delta[min(i, len(delta) - 1)]
        if below <= abs(utility) < below + width:
            score = i + (abs(utility) - below) / width
            return -score if utility < 0 else score
        below, i = below + width, i + 1


def dampened_odd(utility: Fraction, delta: Sequence[Fraction]) -> Fraction:
    """The rule in use: the least s with B(s) ≥ |u|, with the sign of u, and 0 at 0."""
    if utility == 0:
        return Fraction(0)
    below, i = Fraction(0), 0
    while below + delta[min(i, len(delta) - 1)] < abs(utility):
        below += delta[min(i, len(delta) - 1)]
        i += 1
    score = i + (abs(utility) - below) / delta[min(i, len(delta) - 1)]
    return -score if utility < 0 else score


def tabulated(
    members: Iterable[Graph],
    utility: Utility,
    delta: Delta,
    max_degree: int,
    horizon: int,
    unit: int,
) -> tuple[Array, Array]:
    """u and δ(0 … horizon) in steps of 1/unit, which must hold every value exactly."""

    def whole(value: Fraction) -> int:
        assert (value * unit).denominator == 1
        return int(value * unit)

    graphs = list(members)
    nodes = range(len(graphs[0]))
    utilities = [[whole(utility(graph, v)) for v in nodes] for graph in graphs]
    deltas = [
        [[whole(delta(graph, v, t, max_degree)) for v in nodes] for t in range(horizon + 1)]
        for graph in graphs
    ]
    return np.array(utilities), np.array(deltas)
