"""Counts of attribute levels by class within the nodes of a tree, one pass per level of the tree.

Every row carries the number of its node, or −1 once that node is a leaf. Attributes of few levels
are counted together: one counter for each combination of their levels within a node and a class.
The table of one attribute is a margin of these. The work follows from the number of rows, the
public levels and the number of nodes alone.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.cells import margin
from mechanisms.kernels.columns import Column, stacked
from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor

Codes = NDArray[Any]
Counts = NDArray[np.int64]
#: The number of the tree node that each row has reached; −1 for rows in finished leaves.
Nodes = NDArray[np.int32]

#: A worker reads blocks of ``BLOCK`` rows. Within a block, ``TILE`` rows at a time are counted for
#: all attributes, so that these rows stay in the cache of the processor.
BLOCK, TILE = 1 << 15, 1 << 12
#: Attributes with few values are counted together, with a counter for each combination of their
#: values. The first number bounds the combinations of such a group of attributes. The second bounds
#: its counters for all nodes of the tree level and all classes, so that they fit the second-level
#: cache.
COMBINATIONS, COUNTERS = 1 << 8, 1 << 16
#: Up to this many counters, consecutive rows use four separate sets of them, so that consecutive
#: rows of one cell do not wait for the same counter.
INTERLEAVED = 1 << 12


def joined(levels: Sequence[int], cells: int) -> list[list[int]]:
    """The numbers of the attributes that are counted together, for so many cells of each.

    The fewest groups of neighbours in the order of their levels. More cells never make it fewer.
    """
    most = min(COMBINATIONS, COUNTERS // cells)
    groups: list[list[int]] = []
    size = 0
    for attribute in sorted(range(len(levels)), key=levels.__getitem__):
        size *= levels[attribute]
        if not 0 < size <= most:
            groups.append([])
            size = levels[attribute]
        groups[-1].append(attribute)
    return groups


def node_tables(
    columns: Sequence[Column],
    classes: Column,
    where: Nodes,
    nodes: int,
    executor: Executor,
) -> list[Counts]:
    """Level × class counts of every node, one int64 array (nodes, levels, classes) per column.

    Args:
        columns: codes of each attribute, and its number of public levels.
        classes: the same for the class attribute. All codes have one length and lie in range; there
            are fewer than 2³¹ rows.
        where: each row's node, in [−1, nodes).
    """
    if not columns:
        return []
    labels, count = classes
    levels = np.array([size for _, size in columns], np.int64)
    groups = joined(levels.tolist(), nodes * count)
    members = np.array([one for group in groups for one in group], np.int64)
    ends = np.array(list(accumulate(map(len, groups), initial=0)), np.int64)
    shapes = [(nodes, count, *(columns[one][1] for one in group)) for group in groups]
    # Rows in finished leaves of the tree have no node. They are counted in extra cells at the end
    # of each table, one for each combination of values, which are dropped.
    cells = [prod(shape) + prod(shape[2:]) for shape in shapes]
    offsets = np.array(list(accumulate((_sets(one) * one for one in cells), initial=0)), np.int64)
    blocks = range(0, len(labels), BLOCK)
    parts = max(1, min(executor.workers, len(blocks)))

    def counted(part: int) -> NDArray[np.int32]:
        counts = np.zeros(offsets[-1], np.int32)
        for start in blocks[part::parts]:
            rows = slice(start, start + BLOCK)
            own = stacked(columns, rows), labels[rows], where[rows]
            _count(*own, count, nodes, levels, members, ends, np.array(cells), offsets, counts)
        return counts

    total = sum(executor.map(counted, range(parts)), np.zeros(offsets[-1], np.int64))
    tables: dict[int, Counts] = {}
    for group, shape, size, offset in zip(groups, shapes, cells, offsets, strict=False):
        sets = total[offset : offset + _sets(size) * size].reshape(-1, size).sum(axis=0)
        table = sets[: prod(shape)].reshape(shape)
        for axis, attribute in enumerate(group, start=2):
            one = margin(table, (0, 1, axis))
            tables[attribute] = np.ascontiguousarray(one.transpose(0, 2, 1))
    return [tables[attribute] for attribute in range(len(columns))]


def _sets(size: int) -> int:
    return 4 if size <= INTERLEAVED else 1


@compiled
def _count(
    codes: Codes,
    labels: Codes,
    where: Nodes,
    classes: int,
    nodes: int,
    levels: Counts,
    members: Counts,
    ends: Counts,
    cells: Counts,
    offsets: Counts,
    counts: NDArray[np.int32],
) -> None:
    rows = len(labels)
    own, mixed = np.empty(TILE, np.uint32), np.empty(TILE, np.uint32)
    for start in range(0, rows, TILE):
        size = min(TILE, rows - start)
        for row in range(size):
            node, label = where[start + row], np.int32(labels[start + row])
            inside = np.int32(node >= 0)
            own[row] = np.uint32(inside * (node * classes + label) + (1 - inside) * nodes * classes)
        for group in range(len(cells)):
            mixed[:] = own
            for member in members[ends[group] : ends[group + 1]]:
                column, width = codes[member, start : start + size], np.uint32(levels[member])
                for row in range(size):
                    mixed[row] = mixed[row] * width + np.uint32(column[row])
            here = counts[offsets[group] : offsets[group + 1]]
            # The distance in memory between the four sets of counters that consecutive rows use, or
            # 0 if all rows share one set.
            step = np.uint64(cells[group] if len(here) > cells[group] else 0)
            whole = size // 4 * 4
            for row in range(0, whole, 4):
                here[np.uint64(mixed[row])] += 1
                here[step + np.uint64(mixed[row + 1])] += 1
                here[np.uint64(2) * step + np.uint64(mixed[row + 2])] += 1
                here[np.uint64(3) * step + np.uint64(mixed[row + 3])] += 1
            for row in range(whole, size):
                here[np.uint64(mixed[row])] += 1


def descend(
    columns: Sequence[Column],
    where: Nodes,
    split: Nodes,
    first: Nodes,
    numbers: Nodes,
    executor: Executor,
) -> Nodes:
    """The node of every row one level further down, int32 (rows,).

    Args:
        columns: codes of all attributes, and their numbers of public levels.
        where: each row's node at this level, −1 for none.
        split: the column by which each node is split, shape (nodes,).
        first: the number of each node's first child among all children of the level.
        numbers: the new number of each child, −1 if it is a leaf.
    """
    below = np.empty(len(where), np.int32)
    used = sorted(set(split.tolist()))
    places = np.array([used.index(column) for column in split.tolist()], np.int32)
    chosen = [columns[column] for column in used]

    def part(start: int) -> None:
        rows = slice(start, start + BLOCK)
        codes = stacked(chosen, rows)
        _descend(codes, where[rows], places, first, numbers, below[rows])

    executor.map(part, range(0, len(where), BLOCK))
    return below


@compiled
def _descend(
    codes: Codes, where: Nodes, places: Nodes, first: Nodes, numbers: Nodes, below: Nodes
) -> None:
    for row in range(len(where)):
        # A row without a node (−1) is processed as a row of the first node, and its result is set
        # to −1 without a branch. The run time must not show which rows have no node.
        node, inside = max(where[row], 0), where[row] >= 0
        child = numbers[first[node] + codes[places[node], row]]
        below[row] = inside * (child + 1) - 1
