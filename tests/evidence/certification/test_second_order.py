"""How far one flip moves the local sensitivity of k-triangles, and the margins of noisy bounds."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp

import numpy as np
import pytest
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from mechanisms.noise.rate import Rate
from mechanisms.statistics.graphs import most_second_order
from mechanisms.statistics.release.noisy_local import margin, second_order
from tests.evidence.certification.graphs import flipped, graph_of
from tests.evidence.certification.test_graph_statistics import (
    LOSSES,
    flip_change,
    most_common,
    universe,
)


def test_the_second_order_bound_of_two_triangles() -> None:
    for nodes in (3, 4, 5):
        space = universe(nodes, nodes - 1)
        change = [flip_change(member, 2) for member in space.members]
        support = [m.support for m in space.measured["two_triangles"]]
        most = most_second_order(space.dataset)
        pairs = zip(space.members, change, strict=True)
        assert support == [(most_common(graph), c, most) for graph, c in pairs]
        for i, j in [*space.pairs, *((j, i) for i, j in space.pairs)]:
            a, b = most_common(space.members[i]), most_common(space.members[j])
            assert abs(a - b) <= 1
            assert abs(change[i] - change[j]) <= second_order(a, most)


def corrected(a: int, k: int) -> int:
    disjoint = 4 * comb(a, k - 2) if a >= 2 else 0
    return max(quoted(a, k), disjoint)


def quoted(a: int, k: int) -> int:
    """As often printed, without flips that share no node."""
    return 3 * comb(a, k - 1) + a * comb(a, k - 2)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_second_order_bounds_of_all_graphs_of_six_nodes(k: int) -> None:
    pairs = list(combinations(range(6), 2))
    masks = np.arange(1 << len(pairs))
    has = {pair: masks >> bit & 1 for bit, pair in enumerate(pairs)}
    has |= {(b, a): edge for (a, b), edge in has.items()}
    shared = {
        (a, b): sum((has[a, v] & has[v, b] for v in range(6) if v not in (a, b)), 0 * masks)
        for a, b in pairs
    }
    choose = np.array([comb(a, k) for a in range(7)])
    value = sum((has[pair] * choose[shared[pair]] for pair in pairs), 0 * masks)
    change = _worst([np.abs(value[masks ^ 1 << bit] - value) for bit in range(len(pairs))])
    moved = _worst([np.abs(change[masks ^ 1 << bit] - change) for bit in range(len(pairs))])
    most = _worst(list(shared.values()))
    for bound in (corrected, quoted):
        assert (moved <= np.array([bound(a, k) for a in range(5)])[most]).all()
    if k == 2:
        assert [corrected(a, k) for a in range(5)] == [4 * a for a in range(5)]
        # Three times the largest number of common neighbours is too small a bound: in some graph
        # one change moves the local sensitivity by more.
        assert (moved > 3 * most).any()


def _worst(columns: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.max(np.array(columns), axis=0)  # type: ignore[no-any-return]


def test_the_quoted_second_order_bound_fails_for_more_triangles() -> None:
    i, j, u, v = range(4)
    cycle = [(i, u), (i, v), (j, u), (j, v)]
    edges = list(cycle)
    for number, (a, b) in enumerate(cycle):
        for extra in (4 + 2 * number, 5 + 2 * number):
            edges += [(a, extra), (b, extra)]
    before = graph_of(12, edges)
    after = flipped(before, u, v)
    a = most_common(before)
    assert a == 2
    for k, was, becomes in ((3, 4, 12), (4, 0, 4)):
        assert (flip_change(before, k), flip_change(after, k)) == (was, becomes)
        assert quoted(a, k) < becomes - was <= corrected(a, k)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_margin_covers_all_but_half_of_delta(loss: PrivacyLoss) -> None:
    for rate in (Rate(1 << 40, 1 << 61), Rate(3, 7), Rate(1 << 55, 1 << 52)):
        above = margin(rate, loss.delta_atto)
        # Laplace noise is below −margin with probability ½·e^{−rate·margin}. This is at most δ/2,
        # and a margin one step smaller would not be enough.
        delta = loss.delta_atto / 1e18
        assert exp(-float(rate.exponent() * above)) <= delta * (1 + 1e-12)
        assert above == 0 or exp(-float(rate.exponent() * (above - 1))) > delta * (1 - 1e-12)
