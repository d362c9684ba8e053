"""Sorting in work that does not depend on the values: a radix sort by eleven bits at a time.

Library sorts are faster on values in order or with few levels, so their time shows which it was.
Here every input of one length takes the same operations.
"""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

Keys = NDArray[np.uint64]

#: The bits of one digit, and the number of digits that hold a key of 64 bits.
_BITS, _DIGITS = 11, 6
_SIGN = np.uint64(1 << 63)


def ascending(values: Integers) -> Integers:
    """The order in which ``values``, int64 (n,), ascend; equal values keep their order."""
    return order_of(np.ascontiguousarray(values, dtype=np.int64).view(np.uint64) ^ _SIGN)


def sorted_numbers(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers in ascending order; none is NaN."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    # Read as an unsigned number, the bits of a negative double fall as the double rises, so all of
    # them are inverted. Other doubles have only the sign bit inverted.
    turned = (bits.view(np.int64) >> 63).view(np.uint64) | _SIGN
    ordered: NDArray[np.float64] = numbers[order_of(bits ^ turned)]
    return ordered


def lexicographic(*rows: Integers) -> Integers:
    """The order by the last row, then by the one before it, and so on, int64 (n,)."""
    order = ascending(rows[0])
    for row in rows[1:]:
        order = order[ascending(row[order])]
    return order


def classes(*rows: Integers) -> tuple[Integers, Integers]:
    """The number of the class of equal columns that each column is in, and one column of each."""
    order = lexicographic(*rows)
    differs = np.zeros(order.size, dtype=np.bool_)
    differs[:1] = True
    for row in rows:
        differs[1:] |= row[order[1:]] != row[order[:-1]]
    numbers = np.empty(order.size, dtype=np.int64)
    numbers[order] = np.cumsum(differs) - 1
    return numbers, order[differs]


@compiled
def order_of(keys: Keys) -> Integers:
    """The stable ascending order of unsigned keys."""
    n, mask, bits = len(keys), np.uint64((1 << _BITS) - 1), np.uint64(_BITS)
    counts = np.zeros((_DIGITS, 1 << _BITS), np.int64)
    for i in range(n):
        key = keys[i]
        for digit in range(_DIGITS):
            counts[digit, np.int64(key & mask)] += 1
            key >>= bits
    order, other = np.arange(n), np.empty(n, np.int64)
    now, then = keys.copy(), np.empty(n, np.uint64)
    for digit in range(_DIGITS):
        places, start = counts[digit], np.int64(0)
        for value in range(len(places)):
            start, places[value] = start + places[value], start
        shift = np.uint64(digit * _BITS)
        for i in range(n):
            here = np.int64((now[i] >> shift) & mask)
            then[places[here]], other[places[here]] = now[i], order[i]
            places[here] += 1
        now, then, order, other = then, now, other, order
    return order


@compiled
def sort_below(values: Integers, spare: Integers, limit: int) -> None:
    """Sort ``values``, each in [0, ``limit``), in place; ``spare`` has the same shape.

    The number of digits follows from the limit, which is public.
    """
    counts = np.empty(1 << _BITS, np.int64)
    shift = 0
    while shift < 63 and limit > 1 << shift:
        counts[:] = 0
        for i in range(len(values)):
            counts[(values[i] >> shift) & ((1 << _BITS) - 1)] += 1
        start = 0
        for value in range(len(counts)):
            start, counts[value] = start + counts[value], start
        for i in range(len(values)):
            value = (values[i] >> shift) & ((1 << _BITS) - 1)
            spare[counts[value]] = values[i]
            counts[value] += 1
        values[:] = spare
        shift += _BITS
