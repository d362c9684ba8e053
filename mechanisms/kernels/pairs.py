"""Contingency tables of many pairs of attributes, in one pass over the rows.

Blocks of rows stay in the cache while every pair is counted. Two attributes of two levels each need
no counters. Their columns are packed into bits, and a conjunction counts the rows with the second
level of both, 64 rows per instruction.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.columns import Column, stacked
from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor, Inline

Counts = NDArray[np.int64]
Words = NDArray[np.uint64]
Pair = tuple[int, int]

#: A worker reads blocks of ``BLOCK`` rows. Within a block, ``TILE`` rows at a time are counted for
#: all pairs of attributes, so that these rows stay in the cache of the processor.
BLOCK = 1 << 18
TILE = 1 << 12
#: A column of an attribute with two values is packed into one bit per row. This number of 64-bit
#: words of each column is counted for all pairs of attributes before the next words are read. So
#: many words of 16 columns fill a first-level cache.
WORDS = 1 << 8


def pair_tables(
    columns: Sequence[Column], pairs: Sequence[Pair], executor: Executor | None = None
) -> list[Counts]:
    """Counts of the levels of column i by those of column j, int64 (levels i, levels j) per pair.

    Args:
        columns: codes and levels of each attribute, all of one length and in range.
        pairs: numbers of two columns, which may be the same.
    """
    binary = [number for number, pair in enumerate(pairs) if _binary(columns, pair)]
    others = [number for number, pair in enumerate(pairs) if not _binary(columns, pair)]
    tables: list[Counts] = [np.zeros(0, np.int64)] * len(pairs)
    _count(columns, pairs, binary, True, executor or Inline(), tables)
    _count(columns, pairs, others, False, executor or Inline(), tables)
    return tables


def _binary(columns: Sequence[Column], pair: Pair) -> bool:
    return all(columns[number][1] == 2 for number in pair)


def _count(
    columns: Sequence[Column],
    pairs: Sequence[Pair],
    chosen: list[int],
    binary: bool,
    executor: Executor,
    tables: list[Counts],
) -> None:
    """Fill in the tables of the ``chosen`` pairs, which are all ``binary`` or all not."""
    if not chosen:
        return
    used = sorted({number for index in chosen for number in pairs[index]})
    place = {number: i for i, number in enumerate(used)}
    here = [columns[number] for number in used]
    firsts, seconds = (
        np.array([place[pairs[index][side]] for index in chosen], np.int64) for side in (0, 1)
    )
    levels = np.array([size for _, size in here], np.int64)
    offsets = np.cumsum([0, *(levels[firsts] * levels[seconds])], dtype=np.int64)

    blocks = range(0, len(here[0][0]), BLOCK)
    parts = max(1, min(executor.workers, len(blocks)))

    def count(part: int) -> Counts:
        total = np.zeros(offsets[-1], np.int64)
        for start in blocks[part::parts]:
            rows = slice(start, start + BLOCK)
            if binary:
                total += _packed_counts(here, rows, firsts, seconds)
            else:
                total += _pair_counts(stacked(here, rows), firsts, seconds, levels, offsets)
        return total

    # Each part of the rows has its own counters for all pairs of attributes. More parts than
    # workers would only take more memory.
    counts = sum(executor.map(count, range(parts)), np.zeros(offsets[-1], np.int64))
    for i, index in enumerate(chosen):
        shape = levels[firsts[i]], levels[seconds[i]]
        tables[index] = counts[offsets[i] : offsets[i + 1]].reshape(shape)


def _packed_counts(
    columns: Sequence[Column], rows: slice, firsts: Counts, seconds: Counts
) -> Counts:
    words = packed(columns, rows)
    ones, both = _ones(words), _both_counts(words, firsts, seconds)
    count = len(range(*rows.indices(len(columns[0][0]))))
    first, second = ones[firsts] - both, ones[seconds] - both
    return np.stack([count - both - first - second, second, first, both], axis=1).ravel()


def packed(columns: Sequence[Column], rows: slice = slice(None)) -> Words:
    """Columns of codes 0 and 1 as bits, uint64 (columns, words); bits after the last row are 0."""
    count = len(range(*rows.indices(len(columns[0][0]))))
    bits = np.zeros((len(columns), -(-count // 64) * 8), np.uint8)
    for row, (codes, _) in zip(bits, columns, strict=True):
        row[: -(-count // 8)] = np.packbits(codes[rows])
    return bits.view(np.uint64)


@compiled
def _pair_counts(
    codes: NDArray[Any], firsts: Counts, seconds: Counts, levels: Counts, offsets: Counts
) -> Counts:
    # Odd and even rows use separate counters, so that two consecutive rows with the same pair of
    # values do not wait for the same counter.
    counts = np.zeros((2, offsets[-1]), np.int64)
    for start in range(0, codes.shape[1], TILE):
        stop = min(start + TILE, codes.shape[1])
        for pair in range(len(firsts)):
            first, second = codes[firsts[pair]], codes[seconds[pair]]
            width, offset = levels[seconds[pair]], offsets[pair]
            for row in range(start, stop):
                cell = offset + np.int64(first[row]) * width + np.int64(second[row])
                counts[row & 1, cell] += 1
    merged: Counts = counts.sum(axis=0)
    return merged


@compiled
def _ones(words: Words) -> Counts:
    counts = np.zeros(len(words), np.int64)
    for column in range(len(words)):
        total = np.uint64(0)
        for word in words[column]:
            total += set_bits(word)
        counts[column] = np.int64(total)
    return counts


@compiled
def _both_counts(words: Words, firsts: Counts, seconds: Counts) -> Counts:
    counts = np.zeros(len(firsts), np.int64)
    for start in range(0, words.shape[1], WORDS):
        stop = min(start + WORDS, words.shape[1])
        for pair in range(len(firsts)):
            first, second = words[firsts[pair]], words[seconds[pair]]
            total = np.uint64(0)
            for word in range(start, stop):
                total += set_bits(first[word] & second[word])
            counts[pair] += np.int64(total)
    return counts
