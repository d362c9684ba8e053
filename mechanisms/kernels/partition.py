"""Counts of attribute levels by class within the nodes of a growing tree, one pass a level of it.

Every row carries the number of its node, −1 once that node is a leaf. A level of the tree reads
each column once, whatever the number of nodes; the counts are those of ``contingency`` for every
node at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.contingency import BLOCK
from mechanisms.model.executor import Executor

Codes = NDArray[Any]
Counts = NDArray[np.int64]
#: The number of each row's node, −1 for rows that count no more.
Nodes = NDArray[np.int32]

#: Up to so many counters four sets are filled by turns: increments of one wait for each other.
INTERLEAVED = 1 << 14


def node_tables(
    columns: Sequence[tuple[Codes, int]],
    classes: tuple[Codes, int],
    where: Nodes,
    nodes: int,
    executor: Executor,
) -> list[Counts]:
    """Level × class counts of every node, one int64 array (nodes, levels, classes) a column.

    Args:
        columns: codes of each attribute and how many public levels it has.
        classes: the same of the class attribute. All codes have one length and lie in range.
        where: each row's node, in [−1, nodes).
    """
    labels, labels_count = classes

    def part(column: tuple[Codes, int]) -> Counts:
        codes, levels = column
        sets = 4 if nodes * levels * labels_count <= INTERLEAVED else 1
        return _count(codes, labels, where, nodes, levels, labels_count, sets)

    return executor.map(part, columns)


def descend(
    columns: Sequence[Codes],
    where: Nodes,
    split: Nodes,
    first: Nodes,
    numbers: Nodes,
    executor: Executor,
) -> Nodes:
    """Where every row is one level further down, int32 (rows,).

    Args:
        columns: codes of all attributes.
        where: each row's node at this level, −1 for none.
        split: the column that each node splits by, shape (nodes,).
        first: the number of each node's first child among all children of the level.
        numbers: what each child is called from now on, −1 where it is a leaf.
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
def _count(
    codes: Codes,
    labels: Codes,
    where: Nodes,
    nodes: int,
    levels: int,
    labels_count: int,
    sets: int,
) -> Counts:
    counts = np.zeros((sets, nodes, levels, labels_count), np.int64)
    for row in range(len(codes)):
        node = where[row]
        if node >= 0:
            counts[row & (sets - 1), node, codes[row], labels[row]] += 1
    merged: Counts = counts.sum(axis=0)
    return merged


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
    for row in range(len(codes)):
        node = where[row]
        if node >= 0 and split[node] == column:
            below[row] = numbers[first[node] + codes[row]]
