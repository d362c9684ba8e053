"""The exact ends of an interval of mpmath; its public attributes would round or wrap them."""

from fractions import Fraction
from typing import Any


def bounds(interval: Any) -> tuple[Fraction, Fraction]:
    """The lower and the upper end of a finite interval, as the rationals that they are."""
    low, high = interval._mpi_
    return _exact(*low), _exact(*high)


def _exact(sign: int, mantissa: int, exponent: int, _bits: int) -> Fraction:
    """An mpmath number is (−1)^sign · mantissa · 2^exponent."""
    return Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent
