"""Scales of Laplace noise: exact divergence within δ, and what is printed elsewhere beyond it."""

from __future__ import annotations

from math import exp, expm1, log

import numpy as np
import pytest

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.statistics.prefix_sum import level_bound
from mechanisms.statistics.smoothness import largest_beta
from mechanisms.statistics.two_triangles import Levels, global_sensitivity
from tests.certification.divergence import (
    dijkstra_rates,
    hockey_laplace,
    local_sensitivity,
    printed_rates,
    repaired_rates,
    worst,
)

Pairs = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "expected"),
    [
        ((0, 1), (1, 2), 1, 0.3291437227),
        ((1, 2), (0, 1), 1, 0.1800592126),
        ((0, 1), (8 / 3, 2), 8, 0.0086856339),
    ],
)
def test_the_oracle(
    p: tuple[float, float], q: tuple[float, float], epsilon: float, expected: float
) -> None:
    assert hockey_laplace(p, q, epsilon) == pytest.approx(expected, abs=1e-10)


def divergence(epsilon: float, beta: float, change: float = 1.0) -> float:
    """The worst pair of smooth sensitivity: S and e^β·S, both at least the change."""
    narrow, wide = (0.0, epsilon / 2 / change), (change, epsilon / 2 / change * exp(-beta))
    return max(hockey_laplace(narrow, wide, epsilon), hockey_laplace(wide, narrow, epsilon))


def closed_form(epsilon: float, beta: float) -> float:
    growth = expm1(beta)
    near, far = (exp(-(epsilon * half / 2 + beta) / growth) for half in (1, 3))
    return -expm1(-beta) * (near + far) / 2


def test_the_closed_form_is_the_divergence() -> None:
    for epsilon, beta in ((1, 0.05), (5, 0.3), (0.5, 0.02), (8, 1.2)):
        assert closed_form(epsilon, beta) == pytest.approx(divergence(epsilon, beta), rel=1e-6)
    assert closed_form(1, 0.05) == pytest.approx(5.34963746e-7, rel=1e-8)
    assert closed_form(5, 0.3) == pytest.approx(4.33327989e-5, rel=1e-8)


GRID = [
    (epsilon, delta)
    for epsilon in ("0.1", "0.5", "1", "2", "5", "8", "12")
    for delta in ("0.4", "0.1", "0.01", "0.0001", "0.000001", "0.000000001")
]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_the_largest_beta_is_valid_and_the_largest(epsilon: str, delta: str) -> None:
    loss = PrivacyLoss.parse(epsilon, delta)
    beta = largest_beta(loss.epsilon_nano, loss.delta_atto)
    for share in (0.1, 0.5, 1.0):
        # A smaller change of scale, or of value, is never worse.
        assert divergence(float(epsilon), share * beta) <= float(delta) * (1 + 1e-9)
    if beta + float(epsilon) / 2 * exp(-beta) <= float(epsilon) * (1 - 1e-6):
        assert divergence(float(epsilon), 1.001 * beta) > float(delta)


def test_the_published_beta_fails_at_eight() -> None:
    delta = exp(-2)
    assert divergence(8, 8 / (2 * log(1 / delta))) == pytest.approx(0.2174, abs=1e-4)
    assert delta < 0.1354


@pytest.mark.parametrize(
    ("delta", "one", "two"),
    [(1e-2, 8.6, 11.5), (1e-4, 10.2, 12.8), (1e-6, 11.2, 13.7), (1e-9, 12.3, 14.7)],
)
def test_where_the_published_constants_first_fail(delta: float, one: float, two: float) -> None:
    """β = ε / (2·ln(1/δ)) and ε / (2·ln(2/δ)), by tenths of ε; both hold up to ε = 4."""
    for numerator, first in ((1, one), (2, two)):
        failing = [
            tenths / 10
            for tenths in range(1, 160)
            if divergence(tenths / 10, tenths / 20 / log(numerator / delta)) > delta * (1 + 1e-12)
        ]
        assert failing[0] == first > 4


def test_growth_by_factors_of_one_and_half_t_is_safe() -> None:
    # S(x) ≤ (1 + t/2)·S(x'), t = ε / ln(1/δ), as the published levels intend: ln(1 + t/2) < β*.
    for epsilon, delta in GRID:
        if float(delta) <= exp(-1):
            beta = log(1 + float(epsilon) / log(1 / float(delta)) / 2)
            assert divergence(float(epsilon), beta) < float(delta)


def test_alpha_that_varies_fails() -> None:
    # Two datasets: both conditions of the published theorem hold with equality.
    epsilon, delta, change = 8.0, exp(-16 / 3), 8 / 3
    rates, alphas = (1.0, 2.0), (1 / 3, 2 / 3)
    t = epsilon / log(1 / delta)
    for rate, other, alpha in zip(rates, rates[::-1], alphas, strict=True):
        assert rate * change <= alpha * epsilon + 1e-12
        assert abs(1 - other / rate) <= (1 - alpha) * t + 1e-12
    laws = [(0.0, rates[0]), (change, rates[1])]
    assert worst(laws, [(0, 1)], epsilon) == pytest.approx(0.008686, abs=1e-6)
    assert delta < 0.0049


EPSILON, DELTA = 1.0, 1e-6
GROWTH = 1 + EPSILON / log(1 / DELTA) / 2


def first_breach() -> tuple[list[float], Pairs]:
    q = GROWTH
    return [0, q * q, q, q + 1, -0.999], [(0, 1), (0, 2), (2, 3), (0, 4)]


def second_breach() -> tuple[list[float], Pairs]:
    return [0, 2, 3, 4, 1004], [(0, 1), (1, 2), (2, 3), (3, 4)]


def corrected_rates(
    changes: list[float], pairs: Pairs, growth: float, epsilon: float
) -> list[float]:
    ones, others = np.array(pairs).T
    return [
        epsilon / (2 * level_bound(np.array(changes), ones, others, growth, member))
        for member in range(len(changes))
    ]


def breach(values: list[float], pairs: Pairs, rates: list[float], epsilon: float) -> float:
    return worst(list(zip(values, rates, strict=True)), pairs, epsilon)


def test_printed_levels_are_rejected() -> None:
    values, pairs = first_breach()
    rates = printed_rates(local_sensitivity(values, pairs), pairs, GROWTH, EPSILON)
    assert rates[4] == pytest.approx(1 / 2)
    assert rates[0] == pytest.approx(1 / 2 / GROWTH**2)
    assert breach(values, pairs, rates, EPSILON) == pytest.approx(1.47e-5, rel=0.01)


def test_levels_without_a_higher_neighbour_are_rejected() -> None:
    values, pairs = second_breach()
    changes = local_sensitivity(values, pairs)
    assert changes == [2, 2, 1, 1000, 1000]
    for rule in (printed_rates, repaired_rates):
        rates = rule(changes, pairs, GROWTH, EPSILON)
        assert breach(values, pairs, rates, EPSILON) == pytest.approx(0.983, abs=1e-3)


def test_corrected_levels_of_the_breaches() -> None:
    expected = {
        first_breach: [0.46568280, 0.46568280, 0.48253642, 0.5, 0.48253642],
        second_breach: [0.00053684611, 0.00053684611, 0.00051809560, 0.0005, 0.0005],
    }
    for universe, rates in expected.items():
        values, pairs = universe()
        found = corrected_rates(local_sensitivity(values, pairs), pairs, GROWTH, EPSILON)
        assert found == pytest.approx(rates, rel=1e-6)
        assert breach(values, pairs, found, EPSILON) <= DELTA


def test_rates_need_not_fall_as_local_sensitivities_rise() -> None:
    """The sixth dataset is the least sensitive, but next to the most sensitive of all."""
    q = GROWTH
    values = [0, -(q**3), q**2, q**2 + q, q**2 + q + 1, 1 / q]
    pairs = [(0, 1), (0, 2), (2, 3), (3, 4), (0, 5)]
    changes = local_sensitivity(values, pairs)
    assert changes == pytest.approx([q**3, q**3, q**2, q, 1, 1 / q])
    rates = corrected_rates(changes, pairs, q, EPSILON)
    assert 2 * np.array(rates) == pytest.approx([q**-3, q**-3, q**-2, 1 / q, 1, q**-2])
    assert changes[5] < changes[4]
    assert rates[5] < rates[4]
    assert breach(values, pairs, rates, EPSILON) <= DELTA


def test_the_printed_example() -> None:
    """ε = 5, δ = 1/2000 and levels 7.5 and 10 on six nodes, as printed; 7.5 is no bound there."""
    epsilon, delta = 5.0, 1 / 2000
    t = epsilon / log(1 / delta)
    assert t == pytest.approx(0.65782, abs=1e-5)
    assert 2 * max(7.5, 10 * exp(-t / 2)) / epsilon == 3
    changes, pairs = [7.5, 10.0], [(0, 1)]
    for rule in (printed_rates, corrected_rates):
        rates = rule(changes, pairs, 1 + t / 2, epsilon)
        assert rates == pytest.approx([0.33223, 0.25], abs=1e-5)
        assert 1 / rates[0] == pytest.approx(3.01, abs=1e-4)
    # With a bound that is one, a_H = 3: LS ≤ 15, and 30 one step away.
    beta = largest_beta(5 * NANO, ATTO // 2000)
    smooth = Levels(3, global_sensitivity(4)).smooth(beta)
    assert smooth == pytest.approx(19.998, abs=1e-3)
    assert 2 * smooth / epsilon == pytest.approx(7.999, abs=1e-3)


def test_no_universe_of_four_breaks_the_printed_levels() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        values, pairs = random_universe(rng, int(rng.integers(2, 5)))
        changes = [max(change, 1e-3) for change in local_sensitivity(values, pairs)]
        rates = printed_rates(changes, pairs, GROWTH, EPSILON)
        assert breach(values, pairs, rates, EPSILON) <= DELTA * (1 + 1e-9)


def random_universe(rng: np.random.Generator, members: int) -> tuple[list[float], Pairs]:
    pairs = [(int(rng.integers(0, i)), i) for i in range(1, members)]
    pairs += [
        (i, j)
        for j in range(members)
        for i in range(j)
        if (i, j) not in pairs and rng.random() < 0.2
    ]
    values: list[float] = (10 ** rng.uniform(0, 3, members)).round(3).tolist()
    return values, pairs


def test_a_thousand_random_universes() -> None:
    rng = np.random.default_rng(20260707)
    rejected = {printed_rates: 0, repaired_rates: 0}
    loss = PrivacyLoss.parse("1", "0.000001")
    growth = exp(largest_beta(loss.epsilon_nano, loss.delta_atto))
    for _ in range(1000):
        values, pairs = random_universe(rng, int(rng.integers(2, 9)))
        changes = [max(change, 1e-3) for change in local_sensitivity(values, pairs)]
        rates = corrected_rates(changes, pairs, growth, EPSILON)
        assert breach(values, pairs, rates, EPSILON) <= DELTA * (1 + 1e-9)
        exact = dijkstra_rates(changes, pairs, growth, EPSILON)
        assert breach(values, pairs, exact, EPSILON) <= DELTA * (1 + 1e-9)
        # Levels are never further apart than their datasets: never less noisy.
        assert all(r <= e * (1 + 1e-12) for r, e in zip(rates, exact, strict=True))
        for rule in rejected:
            bad = rule(changes, pairs, GROWTH, EPSILON)
            rejected[rule] += breach(values, pairs, bad, EPSILON) > DELTA * (1 + 1e-9)
    assert min(rejected.values()) > 20
