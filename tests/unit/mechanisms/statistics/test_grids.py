"""Public grids and rates: the parameters of noise that are fixed before records are opened."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.statistics.grid import Plan, rate_at_most, real_exponent, whole_plan
from mechanisms.statistics.quantile import Median, Quantile
from mechanisms.statistics.release.smooth import SmoothSensitivity
from mechanisms.statistics.smoothness import SLACK, largest_beta, smooth_beta
from mechanisms.statistics.triangles import Triangles
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import (
    ADD_REMOVE,
    REPLACE,
    graph,
    graph_dataset,
    table_dataset,
)


def test_grids_follow_from_public_bounds() -> None:
    # A count is released in steps of one while 2·(GS + 1)/ε is at most 2⁴⁰, where GS is its global
    # sensitivity. Beyond that, steps are larger.
    assert whole_plan(1, NANO) == Plan(0, 1)
    assert whole_plan((1 << 39) - 1, NANO).exponent == 0
    assert whole_plan(1 << 39, NANO) == Plan(1, 1 << 38)
    for largest in (Fraction(1, 1000), Fraction(10**6), Fraction(10**15)):
        exponent = real_exponent(largest, NANO)
        assert 2 * (2 * largest / Fraction(2) ** exponent + 2) <= 2**40
        assert 2 * (2 * largest / Fraction(2) ** (exponent - 1) + 2) > 2**39


def test_rates_are_below_what_they_should_be() -> None:
    for rate in (Fraction(1, 3), Fraction(1, 1000), Fraction(2, 3 << 20), Fraction(5, 1 << 40)):
        result = rate_at_most(rate)
        assert result.b == (1 << 52 if rate >= Fraction(1, 512) else 1 << 61)
        assert result.a >= 1 << 21
        assert result.exponent() <= rate <= result.exponent() * (1 + Fraction(1, 1 << 20))
    assert rate_at_most(Fraction(10**6)).exponent() == 512
    with pytest.raises(UnsupportedQuery):
        rate_at_most(Fraction(1, (1 << 40) + 1))


def test_a_beta_too_small_to_follow() -> None:
    """Below 2⁻¹⁷, near ε = 10⁻⁵, noise is that of GS; less its slack β is negative at 4·10⁻⁶."""
    atto = ATTO // 10**6
    assert largest_beta(3_800, atto) < SLACK < largest_beta(4_000, atto)
    assert largest_beta(15_000, atto) < 2.0**-17 < largest_beta(16_000, atto)
    assert smooth_beta(15_000, atto) is None
    assert smooth_beta(16_000, atto) == largest_beta(16_000, atto) - SLACK
    loss = PrivacyLoss(15_000, atto)
    records, dataset = graph(5, [(0, 1), (0, 2), (1, 2), (2, 3)]), graph_dataset(5)
    plan = Triangles().plan(dataset, loss.epsilon_nano)
    measured = Triangles().measure(context(records, dataset), plan)
    rate = SmoothSensitivity().rate(measured, plan, loss)
    assert rate == rate_at_most(Fraction(15_000, NANO) / (2 * plan.cap))


def test_grids_of_candidates() -> None:
    def count(lower: float, upper: float) -> int:
        return len(Median("x").cells(table_dataset(REPLACE, 5, lower, upper)))

    assert count(0.0, 2.0**20) == 2**20 + 1
    assert count(0.0, 2.0**20 + 1) == count(0.5, 9.5) == 2**16 + 1
    # One change moves the rank score of a quantile p by 1 under replace and by max(p, 1 − p) under
    # add/remove, each times the denominator of p.
    tenth = Quantile("x", Fraction(1, 10))
    assert tenth.rank_sensitivity(table_dataset(REPLACE, 5)) == 10
    assert tenth.rank_sensitivity(table_dataset(ADD_REMOVE, 5)) == 9
