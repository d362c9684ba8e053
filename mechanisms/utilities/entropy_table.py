"""Φ and Ψ: x·log₂x and its increments as whole numbers, so that entropies are sums of integers.

ψ(x) = (x + 1)·log₂(x + 1) − x·log₂x;  Ψ[x] is the integer nearest to 2^g·ψ(x), Φ[n] = Σ_{x<n} Ψ[x].
The sensitivity of a utility made of Φ is exact: one record moves it by a difference of two Ψ. Its
proof needs only that Ψ was rounded to the nearest integer. Floating point does not decide this:
values too close to a half are computed again in 160 bits.
"""

from collections import OrderedDict
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np

from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Integers

#: The largest public bound on rows. The table of x·log₂x for every number of rows x takes 8 bytes
#: per row, 160 MB at most.
MAX_ROWS = 20_000_000
FINEST = 32

#: The most entries of all tables in the LRU cache together, 64 MB. A larger table is not cached and
#: is built again once no caller references it. So a caller that needs it often holds a reference.
CACHE_ENTRIES = 1 << 23
CHUNK = 1 << 16

_cache: OrderedDict[tuple[int, int], Integers] = OrderedDict()
#: Tables that are too large for the LRU cache. Weak references keep each of them only as long as
#: some caller references it.
_in_use: WeakValueDictionary[tuple[int, int], Integers] = WeakValueDictionary()
_lock = Lock()


def check_rows(rows: int) -> None:
    """Raise UnsupportedQuery above ``MAX_ROWS``, from public facts."""
    if rows > MAX_ROWS:
        raise UnsupportedQuery(
            "entropies are exact up to a public bound on the rows", supported={"rows": MAX_ROWS}
        )


def entropy_sums(rows: int, bits: int) -> Integers:
    """Φ[0 … rows] on the grid of 2^bits steps per bit, int64 (rows + 1,), read-only.

    Ψ[x] = Φ[x + 1] − Φ[x]. The table is built at its first use and cached. Its run time depends on
    the two arguments, which are public.

    Raises: UnsupportedQuery above ``MAX_ROWS``.
    """
    check_rows(rows)
    key = rows, bits
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
        used = _in_use.get(key)
        if used is not None:
            return used
    sums = _sums(rows, bits)
    with _lock:
        if sums.size > CACHE_ENTRIES:
            _in_use[key] = sums
        else:
            _cache[key] = sums
            while sum(table.size for table in _cache.values()) > CACHE_ENTRIES:
                _cache.popitem(last=False)
    return sums


def _sums(rows: int, bits: int) -> Integers:
    sums = np.zeros(rows + 1, dtype=np.int64)
    for start in range(0, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        np.cumsum(increments(start, stop, bits), out=sums[start + 1 : stop + 1])
        sums[start + 1 : stop + 1] += sums[start]
    sums.flags.writeable = False
    return sums


def increments(start: int, stop: int, bits: int) -> Integers:
    """Ψ[start … stop − 1], int64: exactly the nearest integers."""
    x = np.arange(start, stop, dtype=np.float64)
    # ``log1p`` is necessary for the increase of x·log₂x from x to x + 1. At x = 10⁷ the plain
    # difference (x + 1)·log₂(x + 1) − x·log₂x would lose about half of the 53 bits of a double.
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.log2(x + 1) + x * np.log1p(1 / x) / np.log(2)
    if start == 0:
        exact[0] = 0.0
    scaled = np.ldexp(exact, bits)
    nearest = np.rint(scaled)
    # ψ(x), the increase of x·log₂x from x to x + 1, is below 32, and its floating-point error is
    # well below 2^−45. A value that close to a half could round to the wrong integer, so it is
    # computed again with more digits.
    doubtful = np.abs(np.abs(scaled - nearest) - 0.5) <= 2.0 ** (bits - 45)
    rounded: Integers = nearest.astype(np.int64)
    for index in np.flatnonzero(doubtful):
        rounded[index] = _in_many_digits(start + int(index), bits)
    return rounded


def _in_many_digits(x: int, bits: int) -> int:
    import mpmath

    # At x = 10⁷, x·log₂x has 28 bits before the binary point, so 160 bits leave more than enough
    # after it. The result ψ(x), the increase from x to x + 1, is irrational for x > 1. So no value
    # lies exactly between two integers.
    with mpmath.workprec(160):
        terms = [n * mpmath.log(n, 2) if n else mpmath.mpf(0) for n in (x, x + 1)]
        return int(mpmath.nint(mpmath.ldexp(terms[1] - terms[0], bits)))
