"""Counts of attribute levels by class within the nodes of a tree, one pass per level of the tree.

Every row carries the number of its node, or −1 once that node is a leaf. Each level of the tree
reads each column once, for any number of nodes. ``cells`` counts them: a node is one more axis.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.cells import Axis, Cells, Measure, tabulate
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.contingency import BLOCK
from mechanisms.model.executor import Executor

Codes = NDArray[Any]
Counts = NDArray[np.int64]
#: The number of the tree node that each row has reached; −1 for rows in finished leaves.
Nodes = NDArray[np.int32]


def node_tables(
    columns: Sequence[tuple[Codes, int]],
    classes: tuple[Codes, int],
    where: Nodes,
    nodes: int,
    executor: Executor,
) -> list[Counts]:
    """Level × class counts of every node, one int64 array (nodes, levels, classes) per column.

    Args:
        columns: codes of each attribute, and its number of public levels.
        classes: the same for the class attribute. All codes have one length and lie in range.
        where: each row's node, in [−1, nodes).
    """
    labels, labels_count = classes
    # The number −1 of rows without a node reads the last group, which is none.
    groups = np.append(np.arange(nodes), -1)
    of_node = Axis(lambda rows: where[rows], groups, nodes)
    cells = Cells((of_node, _levels(labels, labels_count)), len(labels))
    measures = [Measure(axis=_levels(codes, levels)) for codes, levels in columns]
    tables = tabulate(cells, measures, executor)
    return [np.ascontiguousarray(table.transpose(0, 2, 1)) for table in tables]


def _levels(codes: Codes, levels: int) -> Axis:
    return Axis(lambda rows: codes[rows], np.arange(levels), levels)


def descend(
    columns: Sequence[Codes],
    where: Nodes,
    split: Nodes,
    first: Nodes,
    numbers: Nodes,
    executor: Executor,
) -> Nodes:
    """The node of every row one level further down, int32 (rows,).

    Args:
        columns: codes of all attributes.
        where: each row's node at this level, −1 for none.
        split: the column by which each node is split, shape (nodes,).
        first: the number of each node's first child among all children of the level.
        numbers: the new number of each child, −1 if it is a leaf.
    """
    below = np.full(len(where), -1, dtype=np.int32)
    used = sorted({int(column) for column in split})

    def part(start: int) -> None:
        rows = slice(start, start + BLOCK)
        for column in used:
            _descend(columns[column][rows], column, where[rows], split, first, numbers, below[rows])

    executor.map(part, range(0, len(where), BLOCK))
    return below


@compiled
def _descend(
    codes: Codes,
    column: int,
    where: Nodes,
    split: Nodes,
    first: Nodes,
    numbers: Nodes,
    below: Nodes,
) -> None:
    last = len(numbers) - 1
    for row in range(len(codes)):
        node = max(where[row], 0)
        inside = (where[row] >= 0) & (split[node] == column)
        # A child is read for every row, also for rows outside of the node: which rows are inside is
        # private.
        child = numbers[min(first[node] + codes[row], last)]
        below[row] += inside * (child - below[row])
