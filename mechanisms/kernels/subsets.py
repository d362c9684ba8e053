"""Entropies of many subsets of attributes, and the facts about their tables that dampening needs.

A subset counts as one attribute, whose levels are the combinations of its members' levels. Only
combinations that occur are visited, so the rows determine the work, however large the product of
the domains is. Subsets are in lexicographic order, so the codes of all but the last attribute can
be reused.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import sort_below
from mechanisms.model.executor import Arrays, Executor, Inline, PartResult
from mechanisms.model.following import follows_records

Codes = NDArray[Any]
Counts = NDArray[np.int64]

#: A subset of attributes with at most this many combinations of public levels has one counter per
#: combination. For a larger one, counters could exceed the memory, so its rows are sorted.
DENSE = 1 << 20
#: The time to count one row in one subset of attributes, in nanoseconds, approximately. From it the
#: executor decides whether other machines share the work.
STEPS = 4


def subset_sums(
    codes: Codes, levels: Counts, subsets: Counts, sums: Counts, executor: Executor | None = None
) -> Counts:
    """ΣΦ(count) over the combinations of each subset, int64 (subsets,).

    Args:
        codes: (attributes, rows), as ``columns.stacked`` returns them.
        levels: public sizes of the domains; the product over a subset is below 2⁶².
        subsets: numbers of attributes, (subsets, size ≥ 1), rows in lexicographic order.
        sums: Φ[0 … rows].
    """
    parts = (executor or Inline()).spread(
        _sums_of,
        {"codes": codes, "levels": levels, "sums": sums},
        partial(_chunks, subsets),
        work=STEPS * len(subsets) * len(sums),
    )
    return np.concatenate([np.zeros(0, np.int64), *(part for (part,) in parts)])


def purest_levels(
    codes: Codes,
    levels: Counts,
    target: int,
    subsets: Counts,
    executor: Executor | None = None,
    most_rows: int = 0,
) -> Counts:
    """For each β the largest m over all combinations of all subsets, or −1 if there is none.

    The classes are the levels of the attribute ``target``, which is in no subset. For a combination
    with τ rows, b of them in the rarest class, m = τ − b and β = max(b, 1) − 1. ``most_rows`` is
    the public bound on the rows. Without one, all work runs on this machine.
    """
    parts = (executor or Inline()).spread(
        _purest_of,
        {"codes": codes, "levels": levels, "target": np.array([target])},
        partial(_chunks, subsets),
        work=STEPS * len(subsets) * most_rows,
    )
    largest: Counts = np.maximum.reduce([part for (part,) in parts])
    return largest


def _sums_of(arrays: Arrays, subsets: Counts) -> PartResult:
    return (_subset_sums(arrays["codes"], arrays["levels"], subsets, arrays["sums"], DENSE),)


def _purest_of(arrays: Arrays, subsets: Counts) -> PartResult:
    target = int(arrays["target"][0])
    return (_purest_levels(arrays["codes"], arrays["levels"], target, subsets, DENSE),)


def _chunks(subsets: Counts, workers: int) -> list[Counts]:
    return np.array_split(subsets, min(4 * workers, max(len(subsets), 1)))


@compiled
def _mix(
    codes: Codes, levels: Counts, subset: Counts, before: Counts, prefix: Counts, mixed: Counts
) -> int:
    """Write the codes of the combinations into ``mixed`` and return their largest possible number.

    ``prefix`` holds the codes of all but the last attribute; it is recomputed when these differ
    from ``before``.
    """
    last = len(subset) - 1
    same = True
    cells: int = 1
    for i in range(last):
        same = same and subset[i] == before[i]
        cells *= levels[subset[i]]
    if not same:
        prefix[:] = 0
        for i in range(last):
            column, width = codes[subset[i]], levels[subset[i]]
            for row in range(len(prefix)):
                prefix[row] = prefix[row] * width + np.int64(column[row])
    column, width = codes[subset[last]], levels[subset[last]]
    for row in range(len(mixed)):
        mixed[row] = prefix[row] * width + np.int64(column[row])
    cells *= width
    return cells


@compiled
@follows_records(
    "each combination that occurs is visited once",
    lambda codes, subsets: len(subsets) * (16 + subsets.shape[1]) * (codes.shape[1] + 2048),
)
def _subset_sums(codes: Codes, levels: Counts, subsets: Counts, sums: Counts, dense: int) -> Counts:
    rows = codes.shape[1]
    totals = np.zeros(len(subsets), np.int64)
    prefix, mixed = np.zeros(rows, np.int64), np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    counts = np.zeros(dense, np.int32)
    before = np.full(subsets.shape[1], -1, np.int64)
    for s in range(len(subsets)):
        cells = _mix(codes, levels, subsets[s], before, prefix, mixed)
        before[:] = subsets[s]
        total = np.int64(0)
        if cells <= dense:
            for row in range(rows):
                counts[mixed[row]] += 1
            # A combination of values with n rows adds Φ(n), about n·log₂n, to the sum of an
            # entropy. Its first row adds Φ(n) and resets the counter, so its other rows add Φ(0) =
            # 0.
            for row in range(rows):
                total += sums[counts[mixed[row]]]
                counts[mixed[row]] = 0
        else:
            sort_below(mixed, spare, cells)
            start = 0
            for row in range(1, rows + 1):
                if row == rows or mixed[row] != mixed[start]:
                    total += sums[row - start]
                    start = row
        totals[s] = total
    return totals


@compiled
@follows_records(
    "each combination that occurs is visited once",
    lambda codes, levels, target, subsets: (
        len(subsets) * (16 + subsets.shape[1] + levels[target]) * (codes.shape[1] + 2048)
    ),
)
def _purest_levels(
    codes: Codes, levels: Counts, target: int, subsets: Counts, dense: int
) -> Counts:
    rows, classes = codes.shape[1], levels[target]
    labels = codes[target]
    # Each combination of values has two numbers: m counts its rows outside of its rarest class, and
    # β is one less than its rows of that class, at least 0. ``largest[β]`` is the largest m of all
    # combinations with this β. The rarest class has at most rows / classes rows, which bounds β and
    # so the length of ``largest``.
    largest = np.full(rows // classes + 1, -1, np.int64)
    # A combination of values without records has no row outside of its rarest class, m = 0, and β =
    # 0. The loop never visits such combinations, so their m is entered here.
    largest[0] = 0
    prefix, mixed = np.zeros(rows, np.int64), np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    counts = np.zeros(dense, np.int32)
    before = np.full(subsets.shape[1], -1, np.int64)
    for s in range(len(subsets)):
        cells = _mix(codes, levels, subsets[s], before, prefix, mixed)
        before[:] = subsets[s]
        for row in range(rows):
            mixed[row] = mixed[row] * classes + np.int64(labels[row])
        if cells * classes <= dense:
            for row in range(rows):
                counts[mixed[row]] += 1
            for row in range(rows):
                if counts[mixed[row]] > 0:
                    first = mixed[row] // classes * classes
                    fewest, together = counts[first], np.int64(0)
                    for cell in range(first, first + classes):
                        fewest = min(fewest, counts[cell])
                        together += counts[cell]
                        counts[cell] = 0
                    beta = max(fewest, 1) - 1
                    largest[beta] = max(largest[beta], together - fewest)
        else:
            sort_below(mixed, spare, cells * classes)
            start, seen, fewest, run = 0, 0, rows, 0
            for row in range(1, rows + 1):
                if row == rows or mixed[row] != mixed[row - 1]:
                    seen, fewest, run = seen + 1, min(fewest, row - run), row
                    if row == rows or mixed[row] // classes != mixed[start] // classes:
                        rarest = fewest if seen == classes else 0
                        beta = max(rarest, 1) - 1
                        largest[beta] = max(largest[beta], row - start - rarest)
                        start, seen, fewest = row, 0, rows
    return largest
