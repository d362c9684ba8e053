"""Interval arithmetic of mpmath, and the exact ends of its intervals.

The public attributes of an mpmath interval round its ends, so the ends are read from the library's
own exact form.
"""

from fractions import Fraction
from threading import local
from typing import Any

_OF_THREAD = local()


def intervals(precision: int) -> Any:
    """The arithmetic of this thread, at so many bits.

    All threads share the global context of mpmath, so one could change the precision of another's
    numbers. So each thread has a context of its own; to make one takes milliseconds.
    """
    from mpmath.ctx_iv import MPIntervalContext

    if not hasattr(_OF_THREAD, "arithmetic"):
        _OF_THREAD.arithmetic = MPIntervalContext()
    _OF_THREAD.arithmetic.prec = precision
    return _OF_THREAD.arithmetic


def bounds(interval: Any) -> tuple[Fraction, Fraction]:
    """The lower and the upper end of a finite interval, as the rationals that they are."""
    low, high = interval._mpi_
    return _exact(*low), _exact(*high)


def _exact(sign: int, mantissa: int, exponent: int, _bits: int) -> Fraction:
    """An mpmath number is (−1)^sign · mantissa · 2^exponent."""
    return Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent
