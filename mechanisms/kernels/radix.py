"""Sorting in work that does not depend on the values: a radix sort by eleven bits at a time.

Library sorts are faster on values in order or with few levels, so their time shows which it was.
Here every input of one length takes the same operations.
"""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

Keys = NDArray[np.uint64]

#: The most bits of one digit of a key. The radix sort passes over all keys once per digit.
_BITS = 11
_SIGN = np.uint64(1 << 63)


def ascending(values: Integers, largest: int | None = None) -> Integers:
    """The order in which ``values``, int64 (n,), ascend; equal values keep their order.

    ``largest`` < 2⁶³ is a public bound on their absolute values: the smaller, the less work.
    """
    if largest is not None:
        return order_of((values + largest).view(np.uint64), (2 * largest).bit_length())
    return order_of(np.ascontiguousarray(values, dtype=np.int64).view(np.uint64) ^ _SIGN)


def sorted_numbers(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers in ascending order; none is NaN."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    # Makes unsigned keys in the order of the doubles. The bits of a negative double fall as the
    # double rises, so all of them are inverted. Other doubles have only the sign bit inverted.
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
def order_of(keys: Keys, bits: int = 64) -> Integers:
    """The stable ascending order of fewer than 2³¹ unsigned keys below 2^bits."""
    n, digits = len(keys), -(-bits // _BITS)
    width = -(-bits // max(digits, 1))
    mask = np.uint64((1 << width) - 1)
    # Keys at even and at odd positions have separate counters. So two consecutive keys with the
    # same digit do not wait in the processor for the same counter.
    counts = np.zeros((2, digits, 1 << width), np.int32)
    for i in range(n):
        key = keys[i]
        for digit in range(digits):
            counts[i & 1, digit, key & mask] += 1
            key >>= np.uint64(width)
    order, other = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    now, then = keys.copy(), np.empty(n, np.uint64)
    for digit in range(digits):
        places, start = counts[0, digit], np.int32(0)
        for value in range(len(places)):
            count = places[value] + counts[1, digit, value]
            places[value] = start
            start += count
        shift = np.uint64(digit * width)
        for i in range(n):
            key = now[i]
            here = (key >> shift) & mask
            place = places[here]
            then[place] = key
            other[place] = order[i]
            places[here] = place + 1
        now, then, order, other = then, now, other, order
    return order.astype(np.int64)


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
