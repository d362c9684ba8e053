"""ρ of every kind of release: vectors to the last digit, and bounds beside the exact formulas."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from accounting.composition import NO_RELEASE, Step, for_group, repeated, total_rho
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import (
    FEMTO,
    LARGEST_FEMTO,
    BoundedRange,
    GaussianNoise,
    LaplaceNoise,
    Pure,
    RhoBound,
    Together,
    in_femto,
    laplace_rho,
    largest_pure,
    pure_femto,
    pure_rho,
)

epsilons = st.integers(1, 10 * NANO).map(lambda nano: Fraction(nano, NANO))
#: The working precision, in bits, of the exact formulas that serve as the reference.
PRECISION = 200


@pytest.mark.parametrize(
    "bound, femto",
    [
        (Pure(Fraction("0.123456789")), 7611124700469),
        (Pure(Fraction("1.23456789")), 678086638709315),
        (Pure(Fraction(6)), 6000000000000000),
        (Pure(Fraction("0.2")), 19933598937584),
        (BoundedRange(Fraction("0.123456789")), 1905197343774),
        (LaplaceNoise(Fraction(1, 8), 4, 4), 107581967213115),
        (LaplaceNoise(Fraction(3, 100), 2, 1), 899932506075),
        (GaussianNoise(Fraction(7253, 1024) ** 2, 2), 19932627848656),
    ],
)
def test_vectors(bound: RhoBound, femto: int) -> None:
    assert bound.femto() == femto


@given(epsilon=epsilons)
def test_pure_is_just_above_the_exact_value(epsilon: Fraction) -> None:
    with mp.workprec(PRECISION):
        exact = _mpf(epsilon) * mp.tanh(_mpf(epsilon) / 2)
        above = _mpf(pure_rho(epsilon)) / exact
        assert 1 <= above < (1 + mpf("1e-5") if epsilon <= 1 else mpf("1.14"))
        assert epsilon > 5 or above < mpf("1.027")


@given(
    rate=st.fractions(Fraction(1, 1000), 3, max_denominator=1000),
    change=st.integers(1, 200),
)
def test_laplace_is_between_the_exact_value_and_that_of_any_release(
    rate: Fraction, change: int
) -> None:
    with mp.workprec(PRECISION):
        λ, ε = _mpf(rate), _mpf(rate * change)
        exact = ε - λ / mp.sinh(λ) * (1 - mp.exp(-ε))
        assert _mpf(laplace_rho(rate, change)) >= exact * (1 - mpf(2) ** -150)
    assert laplace_rho(rate, change) <= pure_rho(rate * change) <= rate * change


@given(nano=st.integers(1, 10**15))
def test_a_charge_keeps_sums_to_64_bits(nano: int) -> None:
    assert 0 < pure_femto(nano) <= min(nano * (FEMTO // NANO), LARGEST_FEMTO)
    assert pure_femto(nano) == in_femto(pure_rho(Fraction(nano, NANO)))


@given(room=st.integers(0, 10**16))
def test_the_largest_pure_query_fits_and_no_larger_one_does(room: int) -> None:
    nano = largest_pure(room)
    assert pure_femto(nano) <= room < pure_femto(nano + 1)


def test_the_search_for_the_largest_query_ends_where_every_charge_is_the_largest() -> None:
    for room in (LARGEST_FEMTO, LARGEST_FEMTO + 1):
        nano = largest_pure(room)
        assert pure_femto(nano) < LARGEST_FEMTO == pure_femto(nano + 1)


bounds = st.one_of(
    epsilons.map(Pure),
    st.builds(BoundedRange, epsilons, st.integers(1, 9)),
    st.builds(
        LaplaceNoise, epsilons.map(lambda one: one / 20), st.integers(1, 40), st.integers(1, 40)
    ),
)


@given(bound=bounds, members=st.integers(1, 6))
def test_a_group_is_between_its_sum_and_the_general_bound(bound: RhoBound, members: int) -> None:
    """ρ grows at least in proportion to the group, and at most with its square."""
    one, group = bound.of_group(1), bound.of_group(members)
    # The formulas use rationals slightly above tanh and exp, which are not exactly convex. So a
    # small relative slack is allowed.
    slack = Fraction(1, 10**4) * group
    assert members * one <= group + slack
    assert group <= members**2 * one + slack


def test_persons_are_charged_for_the_change_of_the_person() -> None:
    """Danger: c times the ρ of one record is far too little for a person with c records."""
    step = Step("draw", PrivacyLoss.parse("0.1"), bound=BoundedRange(Fraction("0.1")))
    (of_four,) = for_group([step], 4)
    assert of_four.rho_femto == 16 * step.rho_femto == 20 * FEMTO // 1000
    vector = LaplaceNoise(Fraction("0.1"), 2, 1)
    assert vector.of_group(3) == 2 * laplace_rho(Fraction("0.1"), 3) > 3 * vector.of_group(1)


def test_steps_add_up_in_rho() -> None:
    loss = PrivacyLoss.parse("0.5")
    draws = repeated("draw", loss, 3, lambda share: BoundedRange(share.epsilon()))
    share, last = loss.shares(3)
    expected = 2 * BoundedRange(share.epsilon()).femto() + BoundedRange(last.epsilon()).femto()
    assert total_rho(draws) == expected
    parallel = Step("count", loss, 7, "parallel")
    assert total_rho([parallel]) == parallel.rho_femto == pure_femto(loss.epsilon_nano)
    assert total_rho([Step("rest", loss, bound=NO_RELEASE)]) == 0
    both = Together((Pure(Fraction(1)), BoundedRange(Fraction(1))))
    assert both.of_group(2) == pure_rho(Fraction(2)) + Fraction(1, 2)


def _mpf(value: Fraction) -> Any:
    return mpf(value.numerator) / value.denominator
