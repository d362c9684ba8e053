"""How many rows each of many trees classifies rightly: all trees in one pass over the rows.

Rows are bits: a block of them gives one row of words a literal, every node of a tree is
(literal ∧ yes) ∨ (¬literal ∧ no) of its children's words, and the root's words are counted. So an
attribute is read once however many trees test it, and the work depends on public facts alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Arrays, Executor, Found, Inline
from mechanisms.model.forest import Column, Forest
from mechanisms.model.records import TableRecords

Ints = NDArray[np.int32]
Counts = NDArray[np.int64]
Words = NDArray[np.uint64]

#: Rows of one block: 64 words a literal and a node, so that a common tree fits the first cache.
BLOCK = 4096
#: The labels among the arrays of columns.
CLASSES = "classes"


@dataclass(frozen=True)
class Confusion:
    """Private counts: TP and TN of each tree, int64 (trees,); P and N, the rows of each class."""

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
    """Count what every tree gets right; labels other than the positive class are one class.

    ``most_rows`` is the public bound on the rows; where there is none it is all done here.
    """
    classes = records.codes[forest.class_attribute]

    def cut(workers: int) -> list[tuple[Forest, int, int]]:
        blocks = -(-len(classes) // BLOCK)
        step = max(1, -(-blocks // (4 * workers))) * BLOCK
        starts = range(0, len(classes), step)
        return [(forest, start, min(start + step, len(classes))) for start in starts]

    words = (len(forest.literal) + 2 * forest.literals) * -(-most_rows // 64)
    literals = most_rows * len(forest.columns)
    found = (executor or Inline()).spread(
        _count, _columns(records, forest), cut, work=words + literals
    )
    counts = sum((part for (part,) in found), np.zeros((2, forest.trees + 1), np.int64))
    positives = int(counts[1, -1])
    negatives = len(classes) - positives
    hits = counts[1, :-1]
    return Confusion(hits, negatives - (counts[0, :-1] - hits), positives, negatives)


def _columns(records: TableRecords, forest: Forest) -> Arrays:
    arrays = {CLASSES: records.codes[forest.class_attribute]}
    for column in forest.columns:
        kept = records.codes if column.thresholds is None else records.values
        arrays[_name(column)] = kept[column.attribute]
    return arrays


def _name(column: Column) -> str:
    """What the column that is asked is called among the arrays: codes and values are apart."""
    return ("codes:" if column.thresholds is None else "values:") + column.attribute


def _count(arrays: Arrays, part: tuple[Forest, int, int]) -> Found:
    forest, start, stop = part
    # Rows: labelled positive, and rightly so. The last entry counts the rows of the class.
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
    """One row of words a literal, uint64 (literals, words); bits behind the last row are 0."""
    bits = np.zeros((forest.literals, words), np.uint64)
    for column in forest.columns:
        here = bits[column.first : column.first + column.count]
        if column.thresholds is None:
            _mark(arrays[_name(column)][rows], here)
        else:
            values = arrays[_name(column)][rows]
            # How many thresholds are at most the value; those are the literals that hold.
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
        if ranks[row] > 0:
            bits[ranks[row] - 1, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    for literal in range(len(bits) - 2, -1, -1):
        for word in range(bits.shape[1]):
            bits[literal, word] |= bits[literal + 1, word]


@compiled
def _ones(word: np.uint64) -> np.uint64:
    """How many bits are set: sums of neighbours, in fields of 2, 4 and 8 bits, then all bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


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
    """Add to ``counts`` (2, trees + 1): rows labelled positive and those of the class, a tree."""
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
                # All bits, those behind the last row too: they are cut off below.
                here[:] = np.uint64(0) - np.uint64(yes[node])
            else:
                asked = literals[literal[node]]
                first, second = values[yes[node] - start], values[no[node] - start]
                for word in range(size):
                    here[word] = second[word] ^ (asked[word] & (first[word] ^ second[word]))
        for word in range(size):
            said = values[0, word]
            if word == size - 1 and rows & 63:
                said &= (np.uint64(1) << np.uint64(rows & 63)) - np.uint64(1)
            counts[0, tree] += np.int64(_ones(said))
            counts[1, tree] += np.int64(_ones(said & actual[word]))
    for word in range(size):
        counts[1, len(starts) - 1] += np.int64(_ones(actual[word]))
