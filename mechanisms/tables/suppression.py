"""Which numbers of a released table come back suppressed, by the policy of its owner.

Danger: this is a policy on released numbers. It reads no record, and it protects nobody: the noise
does. Everything here follows from released counts and the public plan.

A cell is suppressed if its count is below the minimum. Totals that are sums leave such cells out.
A measured total has all rows in it. So where it would show the only suppressed number of its line,
another number of the line is suppressed too, or the total itself.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Truths = NDArray[np.bool_]
#: The attributes that a table or a margin (a table of totals) keeps, as ascending indices of the
#: axes of the whole table.
Axes = tuple[int, ...]
#: Danger: if a total sums only one suppressed cell, the total and the other cells reveal it. So a
#: second cell of this total is suppressed too. That may leave a single suppressed cell in another
#: total, so the step is repeated this often. The number is fixed, so the work is public. A total
#: that then still has a single suppressed cell is suppressed itself.
PASSES = 8


def suppressed(tables: Mapping[Axes, Sequence[Numbers]], minimum: int) -> dict[Axes, Truths]:
    """Returns the suppressed numbers of the table and of each measured margin, by axes.

    Args:
        tables: the released counts, in one or several versions such as raw and adjusted. Each is of
            the shape of its axes. The table itself has all axes.
        minimum: a number is suppressed if its count is below this in any version.
    """
    hidden = {axes: np.any([one < minimum for one in own], axis=0) for axes, own in tables.items()}
    # If a total sums a single suppressed cell, the cell with the smallest count is suppressed
    # beside it. Of equal counts it is the first in public order.
    counts = {axes: np.min(own, axis=0) for axes, own in tables.items()}
    pairs = [
        (fine, coarse)
        for fine, coarse in product(sorted(tables, key=len, reverse=True), repeat=2)
        if set(coarse) < set(fine)
    ]
    for _ in range(PASSES):
        for fine, coarse in pairs:
            _suppress_second(hidden, fine, coarse, counts[fine])
    # The pairs of a table and its totals go from fine tables to coarse ones. So each total is
    # checked after all totals that it sums.
    for fine, coarse in pairs:
        hidden[coarse] |= _has_one(hidden, fine, coarse)
    return hidden


def lines(table: NDArray[np.generic], fine: Axes, coarse: Axes) -> NDArray[np.generic]:
    """The numbers of ``table`` over the axes ``fine``, in one line per number of ``coarse``."""
    first = [fine.index(axis) for axis in coarse]
    moved = np.moveaxis(table, first, range(len(first)))
    return moved.reshape(*moved.shape[: len(first)], -1)


def _has_one(hidden: Mapping[Axes, Truths], fine: Axes, coarse: Axes) -> Truths:
    """The shown numbers of ``coarse`` that sum exactly one suppressed number of ``fine``."""
    result: Truths = (lines(hidden[fine], fine, coarse).sum(axis=-1) == 1) & ~hidden[coarse]
    return result


def _suppress_second(hidden: dict[Axes, Truths], fine: Axes, coarse: Axes, counts: Numbers) -> None:
    alone = _has_one(hidden, fine, coarse)
    among = lines(np.where(hidden[fine], inf, counts), fine, coarse)
    second = np.zeros(among.shape, np.bool_)
    np.put_along_axis(second, among.argmin(axis=-1)[..., None], alone[..., None], axis=-1)
    # The search for the second cell to suppress moved the axes of the totals to the front. Here
    # they move back into the order of the finer table.
    rest = [axis for axis in fine if axis not in coarse]
    order = (*coarse, *rest)
    shape = hidden[fine].shape
    table = second.reshape([shape[fine.index(axis)] for axis in order])
    hidden[fine] = hidden[fine] | np.moveaxis(
        table, range(len(order)), [fine.index(axis) for axis in order]
    )
