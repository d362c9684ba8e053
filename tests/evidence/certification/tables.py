"""Small tables in plain Python: every multiset of cells, its neighbours, utilities by definition.

A table is a tuple of counts, one per cell (a combination of levels). The definitions follow the
formulas literally in whole numbers and rationals; logarithms have 60 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np

from mechanisms.model.domains import NeighbouringRelation
from tests.evidence.certification.checks import Array

Table = tuple[int, ...]
#: The counts of a table: one row per level of an attribute, one column per class.
Counts = Sequence[Sequence[int]]

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE


def all_tables(cells: int, rows: int) -> Iterator[Table]:
    """Every table of exactly ``rows`` rows."""
    if cells == 1:
        yield (rows,)
        return
    for first in range(rows, -1, -1):
        for rest in all_tables(cells - 1, rows - first):
            yield (first, *rest)


def members(relation: NeighbouringRelation, cells: int, rows: int) -> list[Table]:
    """All tables of up to ``rows`` rows under add/remove, smaller first; else of ``rows`` rows."""
    if relation is REPLACE:
        return list(all_tables(cells, rows))
    return [table for size in range(rows + 1) for table in all_tables(cells, size)]


def neighbours(relation: NeighbouringRelation, table: Table) -> Iterator[Table]:
    """All tables one change away, inside the universe or not."""
    less = [_with(table, cell, -1) for cell, count in enumerate(table) if count]
    if relation is ADD_REMOVE:
        yield from less
        yield from (_with(table, cell, 1) for cell in range(len(table)))
    else:
        yield from (_with(fewer, cell, 1) for fewer in less for cell in range(len(table)))


def _with(table: Table, cell: int, change: int) -> Table:
    return (*table[:cell], table[cell] + change, *table[cell + 1 :])


def neighbour_pairs(relation: NeighbouringRelation, listed: Sequence[Table]) -> Array:
    """Every pair once, as indices, shape (m, 2)."""
    number = {table: i for i, table in enumerate(listed)}
    pairs = {
        (i, number[other])
        for i, table in enumerate(listed)
        for other in neighbours(relation, table)
        if number.get(other, -1) > i
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


@cache
def nearest_increment(x: int, bits: int) -> int:
    """The integer nearest to 2^bits · ((x + 1)·log₂(x + 1) − x·log₂x)."""
    with mpmath.workdps(60):
        phi = [n * mpmath.log(n, 2) if n else mpmath.mpf(0) for n in (x, x + 1)]
        return int(mpmath.nint((phi[1] - phi[0]) * 2**bits))


@cache
def nearest_sum(n: int, bits: int) -> int:
    return sum(nearest_increment(x, bits) for x in range(n))


def information_gain(counts: Counts, bits: int) -> int:
    return sum(
        sum(nearest_sum(c, bits) for c in level) - nearest_sum(sum(level), bits) for level in counts
    )


def exact_information_gain(counts: Counts) -> Fraction:
    """Σ_j [Σ_c φ(τ_jc) − φ(τ_j)] to 60 digits."""
    with mpmath.workdps(60):
        terms = [
            sign * n * mpmath.log(n, 2)
            for level in counts
            for sign, n in [*((1, c) for c in level), (-1, sum(level))]
            if n
        ]
        return Fraction(int(mpmath.nint(mpmath.fsum(terms) * 10**50)), 10**50)


def exact_gini(counts: Counts) -> Fraction:
    return sum(
        (
            Fraction(sum(c * c for c in level), sum(level)) - sum(level)
            for level in counts
            if sum(level)
        ),
        Fraction(0),
    )


def gini(counts: Counts, bits: int) -> int:
    """The Gini utility, with each level rounded down separately."""
    return sum(
        ((Fraction(sum(c * c for c in level), sum(level)) - sum(level)) * 2**bits).__floor__()
        for level in counts
        if sum(level)
    )


def commonest(counts: Counts, bits: int) -> int:  # noqa: ARG001 - a whole number on any grid
    return sum(max(level) for level in counts)


def rate(hits: int, total: int, bits: int) -> int:
    share = Fraction(hits, total) if total else Fraction(1, 2)
    return (share * 2**bits).__floor__()
