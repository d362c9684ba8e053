"""Counts the rows that each of many trees classifies correctly, in one pass over the rows.

Each row of the table is one bit, and a literal is one test of an attribute. A block of rows gives
one array of words per literal. The words of a node are (literal ∧ yes) ∨ (¬literal ∧ no), where yes
and no are the words of its children. The set bits of the root are counted. So each attribute is
read once for all trees, and the work depends on public facts alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Arrays, Executor, Inline, PartResult
from mechanisms.model.forest import Column, Forest
from mechanisms.model.records import TableRecords
from mechanisms.model.work import Work, together, work

Ints = NDArray[np.int32]
Counts = NDArray[np.int64]
Words = NDArray[np.uint64]

#: The number of rows that are evaluated together. Their bits take 64 words for each test of an
#: attribute and for each tree node. So the words of a typical tree fit the first-level cache.
BLOCK = 4096
#: The name under which the class labels are stored among the arrays of columns.
CLASSES = "classes"


@dataclass(frozen=True)
class Confusion:
    """Private counts: correct rows per tree and class, int64 (trees,); the rows of each class."""

    true_positives: Counts
    true_negatives: Counts
    positives: int
    negatives: int


def confusion(
    records: TableRecords,
    forest: Forest,
    executor: Executor | None = None,
    most_rows: int = 0,
) -> Confusion:
    """Count the rows that every tree classifies correctly; all other labels form one class.

    ``most_rows`` is the public bound on the rows. Without one, all work runs on this machine.
    """
    classes = records.codes[forest.class_attribute]

    def cut(workers: int) -> list[tuple[Forest, int, int]]:
        blocks = -(-len(classes) // BLOCK)
        step = max(1, -(-blocks // (4 * workers))) * BLOCK
        starts = range(0, len(classes), step)
        return [(forest, start, min(start + step, len(classes))) for start in starts]

    words = (len(forest.literal) + 2 * forest.literals) * -(-most_rows // 64)
    literals = most_rows * len(forest.columns)
    parts = (executor or Inline()).spread(
        _count, _columns(records, forest), cut, work=words + literals
    )
    counts = sum((part for (part,) in parts), np.zeros((2, forest.trees + 1), np.int64))
    positives = int(counts[1, -1])
    negatives = len(classes) - positives
    hits = counts[1, :-1]
    return Confusion(hits, negatives - (counts[0, :-1] - hits), positives, negatives)


def forest_work(rows: int, nodes: int, columns: int, literals: int) -> Work:
    """The public work of ``confusion`` for trees of so many nodes, columns and literals in all."""
    words = -(-rows // 64) + 1
    tests = work("tests of rows", rows * columns + literals * words)
    return together(tests, work("nodes of trees", nodes * words))


def _columns(records: TableRecords, forest: Forest) -> Arrays:
    arrays = {CLASSES: records.codes[forest.class_attribute]}
    for column in forest.columns:
        source = records.codes if column.thresholds is None else records.values
        arrays[_name(column)] = source[column.attribute]
    return arrays


def _name(column: Column) -> str:
    """The name of the column among the arrays: codes and values of one attribute are separate."""
    return ("codes:" if column.thresholds is None else "values:") + column.attribute


def _count(arrays: Arrays, part: tuple[Forest, int, int]) -> PartResult:
    forest, start, stop = part
    # For each tree, ``counts[0]`` has the number of records that the tree labels positive, and
    # ``counts[1]`` the number of these whose class is positive. The last entry of ``counts[1]`` is
    # the number of all records of the positive class.
    counts = np.zeros((2, forest.trees + 1), np.int64)
    for first in range(start, stop, BLOCK):
        rows = slice(first, min(first + BLOCK, stop))
        actual = _level_words(arrays[CLASSES][rows], forest.positive_code)
        _evaluate(
            _literal_words(arrays, forest, rows, len(actual)),
            forest.literal,
            forest.yes,
            forest.no,
            forest.starts,
            actual,
            rows.stop - rows.start,
            counts,
        )
    return (counts,)


def _literal_words(arrays: Arrays, forest: Forest, rows: slice, words: int) -> Words:
    """One row of words per literal, uint64 (literals, words); bits after the last row are 0."""
    bits = np.zeros((forest.literals, words), np.uint64)
    for column in forest.columns:
        here = bits[column.first : column.first + column.count]
        if column.thresholds is None:
            _mark(arrays[_name(column)][rows], here)
        else:
            values = arrays[_name(column)][rows]
            # The test of a threshold holds for a row if the threshold is at most the row's value.
            # ``ranks`` is the number of thresholds whose tests hold, for each row.
            ranks = np.searchsorted(column.thresholds, values, side="right")
            _mark_up_to(ranks, here)
    return bits


@compiled
def _level_words(codes: NDArray[Any], level: int) -> Words:
    words = np.zeros((len(codes) + 63) >> 6, np.uint64)
    for row in range(len(codes)):
        words[row >> 6] |= np.uint64(codes[row] == level) << np.uint64(row & 63)
    return words


@compiled
def _mark(codes: NDArray[Any], bits: Words) -> None:
    for row in range(len(codes)):
        bits[codes[row], row >> 6] |= np.uint64(1) << np.uint64(row & 63)


@compiled
def _mark_up_to(ranks: NDArray[np.int64], bits: Words) -> None:
    for row in range(len(ranks)):
        literal = max(ranks[row] - 1, 0)
        bits[literal, row >> 6] |= np.uint64(ranks[row] > 0) << np.uint64(row & 63)
    for literal in range(len(bits) - 2, -1, -1):
        for word in range(bits.shape[1]):
            bits[literal, word] |= bits[literal + 1, word]


@compiled
def _evaluate(
    literals: Words,
    literal: Ints,
    yes: Ints,
    no: Ints,
    starts: Ints,
    actual: Words,
    rows: int,
    counts: Counts,
) -> None:
    """Add to ``counts`` (2, trees + 1) the rows that each tree labels positive, and of these the
    rows that are positive."""
    size = len(actual)
    largest = 0
    for tree in range(len(starts) - 1):
        largest = max(largest, starts[tree + 1] - starts[tree])
    values = np.zeros((largest, size), np.uint64)
    for tree in range(len(starts) - 1):
        start = starts[tree]
        for node in range(starts[tree + 1] - 1, start - 1, -1):
            here = values[node - start]
            if literal[node] < 0:
                # A leaf that predicts the positive class sets the bits of all rows, also bits
                # beyond the last row of the block. The loop below clears the latter before bits are
                # counted.
                here[:] = np.uint64(0) - np.uint64(yes[node])
            else:
                test = literals[literal[node]]
                first, second = values[yes[node] - start], values[no[node] - start]
                for word in range(size):
                    here[word] = second[word] ^ (test[word] & (first[word] ^ second[word]))
        for word in range(size):
            labelled = values[0, word]
            if word == size - 1 and rows & 63:
                labelled &= (np.uint64(1) << np.uint64(rows & 63)) - np.uint64(1)
            counts[0, tree] += np.int64(set_bits(labelled))
            counts[1, tree] += np.int64(set_bits(labelled & actual[word]))
    for word in range(size):
        counts[1, len(starts) - 1] += np.int64(set_bits(actual[word]))
