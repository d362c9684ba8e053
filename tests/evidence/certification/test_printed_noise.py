"""Published constants of noise against the exact divergence, and published examples as printed."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from accounting.privacy_loss import ATTO, NANO
from mechanisms.statistics.release.ladder import rung_probabilities
from mechanisms.statistics.smoothness import largest_beta
from mechanisms.statistics.triangles import TwoTriangleLevels, global_sensitivity
from tests.evidence.certification.divergence import (
    printed_noisy_scale,
    printed_rates,
    smooth_divergence,
    worst,
)
from tests.evidence.certification.test_noise_scales import corrected_rates


def test_the_published_beta_fails_at_eight() -> None:
    delta = exp(-2)
    assert smooth_divergence(8, 8 / (2 * log(1 / delta))) == pytest.approx(0.2174, abs=1e-4)
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
            if published(tenths / 10, numerator / delta) > delta * (1 + 1e-12)
        ]
        assert failing[0] == first


def published(epsilon: float, inverse: float) -> float:
    """The true δ of β = ε / (2·ln ``inverse``)."""
    return smooth_divergence(epsilon, epsilon / 2 / log(inverse))


def test_both_published_constants_hold_up_to_four() -> None:
    for delta in 10.0 ** -np.arange(2, 13):
        for epsilon in np.arange(1, 41) / 10:
            for numerator in (1, 2):
                assert published(epsilon, numerator / delta) <= delta * (1 + 1e-12)


def varying(epsilon: float) -> tuple[float, float]:
    """Two datasets that meet both conditions of the published theorem with equality, α = 1/3 and
    2/3: the δ they are promised, and the true one."""
    delta, change = exp(-2 * epsilon / 3), epsilon / 3
    rates, alphas = (1.0, 2.0), (1 / 3, 2 / 3)
    t = epsilon / log(1 / delta)
    for rate, other, alpha in zip(rates, rates[::-1], alphas, strict=True):
        assert rate * change == pytest.approx(alpha * epsilon)
        assert abs(1 - other / rate) == pytest.approx((1 - alpha) * t)
    return delta, worst([(0.0, rates[0]), (change, rates[1])], [(0, 1)], epsilon)


def test_alpha_that_varies_fails() -> None:
    assert varying(8) == pytest.approx((0.004828, 0.008686), abs=1e-6)
    failing = [tenths / 10 for tenths in range(1, 101) if np.less(*varying(tenths / 10))]
    assert failing == [tenths / 10 for tenths in range(63, 101)]


# The tests below recompute the paper's example: a graph of six nodes, ε = 5, δ = 1/2000, and the
# local sensitivities 7.5 and 10.

EPSILON, DELTA = 5.0, 1 / 2000
T = EPSILON / log(1 / DELTA)


def test_the_printed_scales() -> None:
    assert pytest.approx(7.6009, abs=1e-4) == log(1 / DELTA)
    assert pytest.approx((0.65782, 0.32891), abs=5e-6) == (T, T / 2)
    assert 2 * max(7.5, 10 * exp(-T / 2)) / EPSILON == 3
    changes, pairs = [7.5, 10.0], [(0, 1)]
    for rule in (printed_rates, corrected_rates):
        rates = rule(changes, pairs, 1 + T / 2, EPSILON)
        assert rates == pytest.approx([0.33223, 0.25], abs=5e-6)
        assert 1 / rates[0] == pytest.approx(3.01, abs=5e-5)
    # The 7.5 that the paper prints does not bound the local sensitivity of its graph. A correct
    # bound is 15 for this graph, and 30 for a graph one change away.
    beta = largest_beta(5 * NANO, ATTO // 2000)
    smooth = TwoTriangleLevels(3, global_sensitivity(4)).smooth(beta)
    assert smooth == pytest.approx(19.998, abs=5e-4)
    assert 2 * smooth / EPSILON == pytest.approx(7.999, abs=5e-4)


def test_the_printed_ladder() -> None:
    """A rung of 7.5 on either side holds 15, and all that follow hold 20 each."""
    sizes = np.array([1, 15, 20])
    law = rung_probabilities(sizes, EPSILON)
    assert law[:2] == pytest.approx([0.4205, 0.5178], abs=5e-5)
    assert law[2] == pytest.approx(1 - 0.4205 - 0.5178, abs=1e-4)
    # The paper's probabilities do not follow from a wider rung (range of answers), nor from the
    # rate ε instead of ε/2 per rung.
    for other in (
        rung_probabilities(np.array([1, 16, 20]), EPSILON),
        rung_probabilities(sizes, 10),
    ):
        assert not np.allclose(other[:2], [0.4205, 0.5178], atol=5e-4)


@pytest.mark.parametrize(("shared", "scale"), [(2, 94.94), (1, 82.42)])
def test_the_printed_noisy_scale_takes_noise(shared: int, scale: float) -> None:
    """LS = 7.5 and the two values that are printed of a_max; the 72 beside them is a draw."""
    noisy_scale = printed_noisy_scale(shared, 7.5, EPSILON, DELTA)
    assert noisy_scale == pytest.approx(scale, abs=5e-3)
    # The global sensitivity 30 is a public bound on the local one, so no noise scale has to exceed
    # 3 · 30 / ε = 18. The paper's scale of 72 does.
    assert 3 * global_sensitivity(4) / EPSILON == 18 < 72 < noisy_scale
