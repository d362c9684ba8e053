"""Scales of Laplace noise: exact divergence within δ, and what is printed elsewhere beyond it."""

from __future__ import annotations

from math import cosh, exp, expm1, log

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.statistics.prefix_sum import level_bound
from mechanisms.statistics.smoothness import largest_beta
from tests.evidence.certification.divergence import (
    dijkstra_rates,
    hockey_laplace,
    local_sensitivity,
    printed_rates,
    repaired_rates,
    smooth_divergence,
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


def closed_form(epsilon: float, beta: float) -> float:
    growth = expm1(beta)
    near, far = (exp(-(epsilon * half / 2 + beta) / growth) for half in (1, 3))
    return -expm1(-beta) * (near + far) / 2


def test_the_divergence_of_two_scales_in_closed_form() -> None:
    """Rates λ and e^b·λ, locations a/λ₂ apart, a ≤ ε."""
    for epsilon, b in ((1.0, 0.05), (1.0, 0.3), (5.0, 0.4), (8.0, 1.2)):
        for a in (0.0, epsilon / 2, epsilon):
            wide, narrow = (0.0, exp(-b)), (a, 1.0)
            formula = -expm1(-b) * exp(-(epsilon + b) / expm1(b)) * cosh(a / expm1(b))
            if b + a * exp(-b) <= epsilon:
                assert hockey_laplace(narrow, wide, epsilon) == pytest.approx(0, abs=1e-15)
            assert hockey_laplace(wide, narrow, epsilon) == pytest.approx(formula, rel=1e-6)


def test_the_closed_form_is_the_divergence() -> None:
    for epsilon, beta in ((1, 0.05), (5, 0.3), (0.5, 0.02), (8, 1.2)):
        assert closed_form(epsilon, beta) == pytest.approx(
            smooth_divergence(epsilon, beta), rel=1e-6
        )
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
        # The scales of the noise on neighbouring datasets differ by a factor of at most e^β. So
        # every β below the largest valid one must be safe too.
        assert smooth_divergence(float(epsilon), share * beta) <= float(delta) * (1 + 1e-9)
    if beta + float(epsilon) / 2 * exp(-beta) <= float(epsilon) * (1 - 1e-6):
        assert smooth_divergence(float(epsilon), 1.001 * beta) > float(delta)


def test_growth_by_factors_of_one_and_half_t_is_safe() -> None:
    # By the published rule the smooth bound S on the local sensitivity grows by a factor of at most
    # 1 + t/2 from one dataset to a neighbour, with t = ε / ln(1/δ). This is safe, because ln(1 +
    # t/2) is below the largest valid β, the logarithm of such a factor.
    for epsilon, delta in GRID:
        if float(delta) <= exp(-1):
            beta = log(1 + float(epsilon) / log(1 / float(delta)) / 2)
            assert smooth_divergence(float(epsilon), beta) < float(delta)


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
    changes = local_sensitivity(values, pairs)
    assert pytest.approx(1.0361912, abs=1e-7) == GROWTH
    assert changes == pytest.approx([GROWTH**2, GROWTH**2, GROWTH, 1, 0.999])
    rates = printed_rates(changes, pairs, GROWTH, EPSILON)
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
        levels = corrected_rates(local_sensitivity(values, pairs), pairs, GROWTH, EPSILON)
        assert levels == pytest.approx(rates, rel=1e-6)
        assert breach(values, pairs, levels, EPSILON) <= DELTA


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


def test_no_universe_of_four_breaks_the_printed_levels() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        values, pairs = random_universe(rng, int(rng.integers(2, 5)))
        changes = [max(change, 1e-3) for change in local_sensitivity(values, pairs)]
        rates = printed_rates(changes, pairs, GROWTH, EPSILON)
        assert breach(values, pairs, rates, EPSILON) <= DELTA * (1 + 1e-9)


def test_the_printed_levels_of_many_salaries_stay_local_sensitivities() -> None:
    """Nearly all next levels are less than 1 + t/2 apart: there the printed rule does nothing."""
    rows = 148_654
    salaries = np.sort(np.random.default_rng(1).lognormal(11, 0.6, rows))
    growth = 1 + EPSILON / log(2 * rows / EPSILON) / 2
    assert np.count_nonzero(salaries[1:] >= growth * salaries[:-1]) < 20


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
        # Two levels (values of the local sensitivity) are never further apart than their datasets.
        # So noise by levels is never smaller than exact smooth sensitivity.
        assert all(r <= e * (1 + 1e-12) for r, e in zip(rates, exact, strict=True))
        for rule in rejected:
            bad = rule(changes, pairs, GROWTH, EPSILON)
            rejected[rule] += breach(values, pairs, bad, EPSILON) > DELTA * (1 + 1e-9)
    assert min(rejected.values()) > 20
