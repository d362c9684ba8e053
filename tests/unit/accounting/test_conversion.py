"""Limits in ρ: the published table, vectors to the last digit, and the promise that they keep."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from accounting.conversion import rho_limit
from accounting.privacy_loss import ATTO, NANO, parse_units
from accounting.rho import FEMTO, pure_femto

EPSILONS = ("0.5", "1", "2", "3", "5", "8", "10", "20", "50")
TABLE = {
    "0.000001": (
        *(".006642", ".024356", ".088153", ".185070", ".463065"),
        *("1.052358", "1.539279", "4.789373", "19.056666"),
    ),
    "0.000000001": (
        *(".003953", ".014973", ".056131", ".120582", ".311693"),
        *(".732833", "1.090786", "3.597386", "15.476211"),
    ),
}


def limit(epsilon: str, delta: str) -> int:
    return rho_limit(parse_units(epsilon, 9), parse_units(delta, 18))


@pytest.mark.parametrize("delta", TABLE)
def test_the_table(delta: str) -> None:
    limited = [limit(epsilon, delta) for epsilon in EPSILONS]
    assert [round(Fraction(one, FEMTO), 6) for one in limited] == list(map(Fraction, TABLE[delta]))


@pytest.mark.parametrize(
    "epsilon, delta, femto",
    [
        ("4", "0.000001", 311064954940835),
        ("4", "0.000000001", 206312909229490),
        ("0.25", "0.000001", 1801548350381),
        ("6", "0.0000001", 552987151848894),
    ],
)
def test_vectors(epsilon: str, delta: str, femto: int) -> None:
    assert femto - 2 <= limit(epsilon, delta) <= femto


@pytest.mark.parametrize(
    "epsilon, delta",
    [("0.25", "0.000001"), ("1", "0.000000001"), ("10", "0.0001"), ("1000", 0.001)],
)
def test_a_limit_keeps_its_promise_and_one_more_unit_does_not(epsilon: str, delta: Any) -> None:
    """Known to fail: a limit rounded up. δ of R is at most δ_c, and that of R + 1 is above it."""
    atto, nano = parse_units(delta, 18), parse_units(epsilon, 9)
    limited = rho_limit(nano, atto)
    with mp.workprec(400):
        promised = mpf(atto) / ATTO
        assert _delta(mpf(limited) / FEMTO, mpf(nano) / NANO) <= promised
        assert _delta(mpf(limited + 1) / FEMTO, mpf(nano) / NANO) > promised


def test_limits_grow_with_both_and_are_refused_beyond_64_bits() -> None:
    assert limit("1", "0.000001") < limit("1.000001", "0.000001") < limit("1.000001", "0.000002")
    assert limit("1000", "0.001") < FEMTO * 1000
    for epsilon, delta in ((1, 0), (1001 * NANO, 1), (1, ATTO // 1000 + 1)):
        with pytest.raises(ValueError):
            rho_limit(epsilon, delta)


def test_the_example_account_takes_248_queries() -> None:
    assert limit("4", "0.000001") // pure_femto(parse_units("0.05", 9)) == 248


def _delta(rho: Any, epsilon: Any) -> Any:
    """δ of ρ-zCDP at ε by the published formula, minimised by ternary search in ln(α − 1)."""

    def log_delta(x: Any) -> Any:
        less = mp.exp(x)
        alpha = 1 + less
        return less * (alpha * rho - epsilon) - mp.log(alpha) + less * mp.log(less / alpha)

    low, high = mpf(-14), mpf(18)
    for _ in range(300):
        third = (high - low) / 3
        if log_delta(low + third) < log_delta(high - third):
            high -= third
        else:
            low += third
    return mp.exp(log_delta((low + high) / 2))
