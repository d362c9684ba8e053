"""The logarithm's error: added up in rationals, and seen on many doubles."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np

from mechanisms.noise.logarithm import ERROR, logarithm

#: The result of one operation on doubles is exact up to a factor within 1 ± this number.
UNIT = Fraction(1, 2**53)
#: A number slightly above √2, and a bound on |s|. The logarithm of m, which lies between √½ and √2,
#: is a series in s = (m − 1)/(m + 1).
ROOT = Fraction(14142135624, 10**10)
LARGEST = (ROOT - 1) / (ROOT + 1)


def twice(*errors: Fraction) -> Fraction:
    """The relative error of a product of factors with these errors."""
    product = Fraction(1)
    for error in errors:
        product *= 1 + error
    return product - 1


def proved_error(terms: int) -> Fraction:
    """A bound on the relative error of ``logarithm`` with so many terms of its series."""
    # The errors of s = (m − 1)/(m + 1) come from m + 1 and from the quotient; m − 1 is exact.
    s = (1 + UNIT) / (1 - UNIT) ** 2 - 1
    z, largest = twice(s, s, UNIT), LARGEST**2
    tail = UNIT  # the relative error of the coefficient of the last term
    for _ in range(terms - 2):
        # The relative error of a sum of positive numbers is at most the largest of their errors,
        # beside that of its own rounding.
        tail = twice(max(twice(tail, z, UNIT), UNIT), UNIT)
    # The series is 1 + z·tail, with an exact 1. Its tail 1/3 + z/5 + … is below 1 and z is at most
    # ``largest``, so the error of z·tail counts at most ``largest`` times.
    series = twice(twice(tail, z, UNIT) * largest, UNIT)
    left_out = largest**terms / ((2 * terms + 1) * (1 - largest))
    of_m = twice(s, series, UNIT, left_out)
    # ln x is the sum of ln m and e·ln 2. In absolute value these are at most 1.001 and 2.001 times
    # ln x. The constant ln 2, its product with e, and the sum are rounded once each.
    parts = Fraction(1001, 1000) * of_m + Fraction(2001, 1000) * twice(UNIT, UNIT)
    return twice(parts, UNIT)


def test_eight_terms_are_enough_and_seven_are_not() -> None:
    assert proved_error(8) < ERROR < proved_error(7)


def test_the_error_is_seen_to_be_as_proved() -> None:
    rng = np.random.default_rng(1)
    root = np.float64(0.7071067811865476)
    near = [np.nextafter(x, to) for x in (1.0, root, 2 * root) for to in (0.0, 2.0)]
    bases = np.concatenate([rng.uniform(0.5, 1.0, 300), near, [0.5, 1.0, root, 2 * root]])
    powers = np.concatenate([[0] * 50, np.arange(-59, 60)])
    values = np.concatenate([bases, np.ldexp(rng.choice(bases, powers.size), powers)])
    values = np.concatenate([values, 1 - 2.0 ** -np.arange(1, 54), [2.0**-60, 2.0**60]])
    with mpmath.workdps(40):
        for x in values.tolist():
            truth = mpmath.log(mpmath.mpf(x))
            assert abs(truth - mpmath.mpf(logarithm(x))) <= ERROR * abs(truth), x
    assert logarithm(1.0) == 0.0
