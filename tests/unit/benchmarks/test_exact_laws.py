"""Laws and tests that the reproduction rests on, against enumeration and printed examples."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from benchmarks.reproduction.experiments.private_sql import (
    betweenness,
    breadth_first,
    path_counts,
    top,
    view_sensitivity,
)
from benchmarks.reproduction.experiments.salaries import level_bounds, smooth_bounds
from benchmarks.reproduction.experiments.worked_examples import divergence
from benchmarks.reproduction.rank_tests import Ranks, greater, rising
from benchmarks.selections.inclusion import inclusion, missed
from benchmarks.statistics.errors import middle_rung, typical
from mechanisms.statistics.local_sensitivity import ConstantBound
from mechanisms.statistics.prefix_sum import CutOffBound, CutOffLevels, local_changes
from mechanisms.statistics.release.ladder import ladder_probability
from mechanisms.statistics.statistic import Measurement
from tests.evidence.certification.graphs import egocentric_betweenness, graph_of


def by_orders(scores: list[int], rate: float, k: int) -> np.ndarray:
    """The same chances from every order of k of the candidates."""
    weights = np.exp(rate * (np.array(scores, float) - max(scores)))
    result = np.zeros(len(scores))
    for order in permutations(range(len(scores)), k):
        rest, chance = list(range(len(scores))), 1.0
        for candidate in order:
            chance *= weights[candidate] / weights[rest].sum()
            rest.remove(candidate)
        result[list(order)] += chance
    return result


def test_chances_of_draws_are_those_of_all_orders() -> None:
    """One test: the kernel is compiled once."""
    for scores in ([0, 0, 0, 0, 0], [3, 1, 4, 1, 5], [9, 2, 2, 2, 0, 0]):
        for rate in (0.01, 0.7, 5.0):
            for k in (1, 2, 3, 5):
                result = inclusion(np.array(scores), rate, k)
                assert result == pytest.approx(by_orders(scores, rate, k), abs=1e-9)
    result, true = (of([3, 1, 4, 1, 5], 0.7, 2) for of in (as_found, by_orders))
    assert result == pytest.approx(true, abs=1e-9)
    # The comparison notices a rate that is wrong by one part in a thousand.
    assert result != pytest.approx(by_orders([3, 1, 4, 1, 5], 0.7007, 2), abs=1e-5)
    # The chances of 2,000 candidates to be among the k selected add up to k. The chances of a few
    # candidates can be computed without those of the others.
    many = np.random.default_rng(3).integers(0, 1 << 30, 2000)
    for rate in (1e-9, 1e-7, 1e-4, 1.0):
        every = inclusion(many, rate, 10)
        assert missed(every, 10) < 1e-7
        some = np.array([5, 17, 1999])
        assert inclusion(many, rate, 10, some) == pytest.approx(every[some], rel=1e-12)


def as_found(scores: list[int], rate: float, k: int) -> np.ndarray:
    return inclusion(np.array(scores), rate, k)


# ---- typical errors of noise -------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_typical_error_of_the_ladder_is_the_median_of_its_law(epsilon: float) -> None:
    widths = np.array([3, 4, 6, 7])
    reached, distance = ladder_probability(0, widths, epsilon), 0
    while reached < 0.5:
        distance += 1
        reached += 2 * ladder_probability(distance, widths, epsilon)
    assert middle_rung(widths, epsilon) == distance


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "3"])
def test_typical_errors_of_noise_are_medians_of_discrete_laws(epsilon: str) -> None:
    loss, cap = PrivacyLoss.parse(epsilon), 4
    rate = float(epsilon) / cap
    p = np.exp(-rate)
    law = (1 - p) / (1 + p) * p ** np.abs(np.arange(-4000, 4001))
    assert typical("laplace", Measurement(0), cap, loss) == middle_of(law, -4000)
    # Noise by smooth sensitivity is Laplace noise of twice the scale, rounded down. It is g or −1 −
    # g, each with probability 1/2, for a geometric g.
    p = np.exp(-rate / 2)
    half = (1 - p) * p ** np.arange(6000) / 2
    law = np.concatenate((half[::-1], half))
    result = typical("smooth_sensitivity", Measurement(0, local=ConstantBound(cap)), cap, loss)
    assert result == middle_of(law, -6000)


def middle_of(law: np.ndarray, first: int) -> float:
    """The least m with P(|noise| ≤ m) ≥ 1/2."""
    sizes = np.abs(np.arange(first, first + len(law)))
    m = 0
    while law[sizes <= m].sum() < 0.5:
        m += 1
    return m


def test_the_counterexample_of_varying_shares_has_its_divergence() -> None:
    assert divergence(8.0) == pytest.approx(0.0086856339, abs=1e-8)


def test_prefix_sums_in_one_pass_are_those_of_the_service() -> None:
    """At every cut-off, with ties; levels are never less noisy, and without ties both agree."""
    changes = local_changes(np.sort(np.random.default_rng(5).integers(0, 20, 60)))
    smooth, levels = smooth_bounds(changes, 0.3), level_bounds(changes, 0.3)
    for k in range(len(changes)):
        assert CutOffBound(changes, k).smooth(0.3) == pytest.approx(smooth[k], rel=1e-9)
        assert CutOffLevels(changes, k).smooth(0.3) == pytest.approx(levels[k], rel=1e-9)
    assert (levels >= smooth * (1 - 1e-12)).all()
    assert (levels > 2 * smooth).any()
    apart = np.unique(changes)
    assert level_bounds(apart, 0.3) == pytest.approx(smooth_bounds(apart, 0.3))


# ---- the PrivateSQL-style baseline -------------------------------------------------------------


def random_graph(rng: np.random.Generator, nodes: int) -> np.ndarray:
    upper = np.triu(rng.random((nodes, nodes)) < rng.uniform(0.2, 0.8), 1).astype(np.int64)
    return upper + upper.T


def test_views_give_betweenness_and_one_edge_moves_each_within_the_bound() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        nodes = int(rng.integers(3, 9))
        one = random_graph(rng, nodes)
        edges = [(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(one)), strict=True)]
        graph = graph_of(nodes, edges)
        views = path_counts(one)
        true = [float(egocentric_betweenness(graph, v)) for v in range(nodes)]
        assert betweenness(views) == pytest.approx(true)
        a, b = rng.choice(nodes, 2, replace=False)
        other = one.copy()
        other[a, b] = other[b, a] = 1 - one[a, b]
        moved = np.abs(path_counts(other) - views).sum(axis=1)
        assert moved.max() <= view_sensitivity(nodes)


def test_the_bound_of_a_view_is_attained() -> None:
    """Node 0 sees all; node 1 will be joined to it, and shares c neighbours, each of which sees the
    d − c others."""
    d, c = 8, 6
    one = np.zeros((d + 2, d + 2), np.int64)
    others = range(2, d + 2)
    shared, apart = others[:c], others[c:]
    pairs = [(0, x) for x in others] + [(1, x) for x in shared]
    pairs += [(x, y) for x in shared for y in apart]
    for x, y in pairs:
        one[x, y] = one[y, x] = 1
    other = one.copy()
    other[0, 1] = other[1, 0] = 1
    moved = np.abs(path_counts(other) - path_counts(one)).sum(axis=1)
    assert moved[0] == (d - c) * (1 + c) + c * (c - 1) // 2
    assert moved[0] <= view_sensitivity(d + 2)
    # The bound is the largest change of the path counts over all graphs of this form, one for each
    # number k of neighbours that the ends of the new edge share.
    assert view_sensitivity(d + 2) == max(
        (d - k) * (1 + k) + k * (k - 1) // 2 for k in range(d + 1)
    )


def test_with_a_large_loss_the_noisy_top_is_the_true_one() -> None:
    one = random_graph(np.random.default_rng(2), 12)
    views = path_counts(one)
    best = np.argsort(-betweenness(views), kind="stable")[:3]
    assert top(views, 3, 1e9, np.random.default_rng(1)).tolist() == best.tolist()


def test_a_breadth_first_sample_takes_the_nearest() -> None:
    # The edges of the graph are 0 - 1, 1 - 2, 2 - 3 and 0 - 4.
    indptr = np.array([0, 2, 4, 6, 7, 8])
    indices = np.array([1, 4, 0, 2, 1, 3, 2, 0], np.int32)
    assert breadth_first(indptr, indices, 0, 4).tolist() == [0, 1, 4, 2]
    assert sorted(breadth_first(indptr, indices, 3, 9).tolist()) == [0, 1, 2, 3, 4]


# ---- statistical tests -------------------------------------------------------------------------


def test_friedman_of_blocks_that_agree() -> None:
    """Rank sums 3, 6 and 9: 12/(3·3·4)·(9 + 36 + 81) − 3·3·4 = 6, of two degrees of freedom."""
    result = Ranks.of([[3, 2, 1], [9, 5, 4], [0.3, 0.2, 0.1]])
    assert result.means.tolist() == [1, 2, 3]
    assert result.statistic == pytest.approx(6)
    assert result.p_value == pytest.approx(np.exp(-3))


@pytest.mark.parametrize(("ways", "factor"), [(3, 2.343), (4, 2.569), (10, 3.164)])
def test_critical_differences_of_nemenyi_are_the_printed_ones(ways: int, factor: float) -> None:
    """Demšar 2006, table 5 (a); with 4 ways and 14 blocks the printed difference is 1.25."""
    blocks = 14
    table = np.random.default_rng(4).random((blocks, ways))
    result = Ranks.of(table).critical
    assert result == pytest.approx(factor * np.sqrt(ways * (ways + 1) / (6 * blocks)), rel=5e-4)
    assert ways != 4 or result == pytest.approx(1.25, abs=5e-3)


def test_benjamini_and_hochberg_adjust_mann_whitney() -> None:
    """Of samples without overlap the one-sided p-value is 1 / C(n + m, n)."""
    apart = ([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    result = greater([apart, apart[::-1], ([3.0, 6.0, 5.0], [1.0, 2.0, 4.0])])
    assert result == pytest.approx([3 * 0.05, 1.0, 0.15], abs=1e-9)


def test_page_sees_a_trend_and_no_trend() -> None:
    assert rising([[1, 2, 3, 4]] * 5) < 1e-4
    assert rising([[4, 3, 2, 1]] * 5) > 0.99
