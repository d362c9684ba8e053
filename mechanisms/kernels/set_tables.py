"""Tables of many sets of attributes, counted together in few passes over the rows.

A set of attributes is counted with others that share its attributes: the table of a larger set is
counted once, and those of its subsets are margins of it. Blocks of rows stay in the cache while all
tables are counted. The work follows from the number of rows and the public levels alone.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations, pairwise
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.cells import margin
from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Arrays, Executor, PartResult

Codes = NDArray[Any]
Counts = NDArray[np.int64]
#: A set of attributes: their numbers in ascending order.
Attributes = tuple[int, ...]

#: The number of rows that are counted for all sets of attributes before the next rows are read, so
#: that they stay in the cache.
TILE = 1 << 13
#: The counts of a set of attributes are added up from those of a larger set that contains several
#: such sets. A larger set has at most this many cells (combinations of values), so that its
#: counters stay in the second-level cache.
COVER_CELLS = 1 << 13
#: With more sets of attributes than this, each set is counted by itself. The search for larger sets
#: that contain several of them would take too long.
MOST_COVERED = 10_000
#: The time to count one row in one set of attributes, in nanoseconds, approximately. From it the
#: executor decides whether other machines share the work.
STEPS = 1


def set_tables(
    codes: Codes, levels: Sequence[int], sets: Sequence[Attributes], executor: Executor, rows: int
) -> dict[Attributes, Counts]:
    """The counts of each set, int64 with one axis for each of its attributes.

    Args:
        codes: (attributes, rows), as ``columns.stacked`` returns them.
        levels: public numbers of levels.
        sets: of one size ≥ 1, each once.
        rows: the public bound on the rows, which decides where the work is done.
    """
    covers = covering(levels, sets)
    parts = executor.spread(
        _counts_of,
        {"codes": codes, "levels": np.array(levels, np.int64)},
        partial(_chunks, covers),
        work=STEPS * len(covers) * rows,
    )
    counts = np.concatenate([np.zeros(0, np.int64), *(part for (part,) in parts)])
    tables: dict[Attributes, Counts] = {}
    start = 0
    for cover in covers:
        shape = [levels[x] for x in cover]
        table = counts[start : start + prod(shape)].reshape(shape)
        start += table.size
        tables |= {one: margin(table, [cover.index(x) for x in one]) for one in covers[cover]}
    return tables


def covering(
    levels: Sequence[int], sets: Sequence[Attributes]
) -> dict[Attributes, list[Attributes]]:
    """Larger sets, and the sets that each of them covers; every set is covered once.

    Each is grown by the attribute that adds the most uncovered sets while its cells fit
    ``COVER_CELLS``. Greedy: the fewest sets would be hard to find.
    """
    if len(sets) > MOST_COVERED:
        return {one: [one] for one in sets}
    uncovered = dict.fromkeys(sets)
    covers: dict[Attributes, list[Attributes]] = {}
    for first in sets:
        if first not in uncovered:
            continue
        cover, gain = first, [first]
        while gain:
            for one in gain:
                del uncovered[one]
            covers[first] = [*covers.get(first, ()), *gain]
            cover, gain = _grown(cover, len(first), levels, uncovered)
        covers[cover] = covers.pop(first)
    return covers


def _grown(
    cover: Attributes, size: int, levels: Sequence[int], uncovered: dict[Attributes, None]
) -> tuple[Attributes, list[Attributes]]:
    """The cover with one more attribute, and the uncovered sets that it then has as well."""
    cells = prod(levels[x] for x in cover)
    best: list[Attributes] = []
    added: Attributes = ()
    for x in range(len(levels)):
        if x in cover or cells * levels[x] > COVER_CELLS:
            continue
        # A larger set with more than ``MOST_COVERED`` subsets of ``size − 1`` attributes gets no
        # further attribute, because listing them would take too long.
        if comb(len(cover), size - 1) > MOST_COVERED:
            break
        rest = (tuple(sorted((*part, x))) for part in combinations(cover, size - 1))
        gain = [one for one in rest if one in uncovered]
        if len(gain) > len(best):
            best, added = gain, (x,)
    return tuple(sorted((*cover, *added))), best


def cells_of(levels: Sequence[int], sets: Iterable[Attributes]) -> int:
    """The number of cells of all sets together, a public fact."""
    return sum(prod(levels[x] for x in one) for one in sets)


def _chunks(covers: dict[Attributes, list[Attributes]], workers: int) -> list[list[Attributes]]:
    listed = list(covers)
    pieces = min(workers, max(len(listed), 1))
    ends = [len(listed) * piece // pieces for piece in range(pieces + 1)]
    return [listed[start:stop] for start, stop in pairwise(ends)]


def _counts_of(arrays: Arrays, sets: Sequence[Attributes]) -> PartResult:
    levels = arrays["levels"]
    members = np.array([x for one in sets for x in one], np.int64)
    starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    offsets = np.cumsum([0, *(levels[list(one)].prod() for one in sets)], dtype=np.int64)
    return (_set_counts(arrays["codes"], levels, members, starts, offsets),)


@compiled
def _set_counts(
    codes: Codes, levels: Counts, members: Counts, starts: Counts, offsets: Counts
) -> Counts:
    rows, sets = codes.shape[1], len(starts) - 1
    # Consecutive rows use four separate sets of counters, so that consecutive rows with the same
    # values do not wait for the same counter.
    counts = np.zeros(4 * offsets[-1], np.int32)
    mixed = np.zeros(TILE, np.uint32)
    for start in range(0, rows, TILE):
        size = min(TILE, rows - start)
        for s in range(sets):
            mixed[:] = 0
            for member in members[starts[s] : starts[s + 1]]:
                column, width = codes[member, start : start + size], np.uint32(levels[member])
                for row in range(size):
                    mixed[row] = mixed[row] * width + np.uint32(column[row])
            cells = np.uint64(offsets[s + 1] - offsets[s])
            own = counts[4 * offsets[s] : 4 * offsets[s + 1]]
            whole = size // 4 * 4
            for row in range(0, whole, 4):
                own[np.uint64(mixed[row])] += 1
                own[cells + np.uint64(mixed[row + 1])] += 1
                own[np.uint64(2) * cells + np.uint64(mixed[row + 2])] += 1
                own[np.uint64(3) * cells + np.uint64(mixed[row + 3])] += 1
            for row in range(whole, size):
                own[np.uint64(mixed[row])] += 1
    merged = np.zeros(offsets[-1], np.int64)
    for s in range(sets):
        cells_here = offsets[s + 1] - offsets[s]
        for quarter in range(4):
            first = 4 * offsets[s] + quarter * cells_here
            merged[offsets[s] : offsets[s + 1]] += counts[first : first + cells_here]
    return merged
