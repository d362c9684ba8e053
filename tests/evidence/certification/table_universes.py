"""Tables of two attributes A and B and a class C, every one of few rows, measured from records.

A size is (rows, levels of A, of B, of C). Under add/remove all tables of up to so many rows are
members, under replace all of exactly that many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf
from tests.evidence.certification import tables
from tests.evidence.certification.family import Family, Universe
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE

LEAVES = ("0", "1")
CANDIDATES: dict[str, Candidates] = {
    "attributes": Attributes(("A", "B"), "C"),
    "values": ValuesOf("A"),
    # All labellings of the two leaves of a tree that tests the attribute A; "0" is the positive
    # class.
    "trees": Trees(
        tuple(
            {"attribute": "A", "value": "0", "equal": {"label": yes}, "other": {"label": no}}
            for yes, no in product(LEAVES, repeat=2)
        ),
        "C",
        "0",
    ),
}


@dataclass(frozen=True)
class Member:
    """One table: the number of rows of each combination of levels, in the order of ``product``."""

    table: tables.Table
    levels: tuple[int, int, int]

    def cube(self) -> Any:
        return np.array(self.table).reshape(self.levels)

    def counts(self, attribute: int) -> tables.Counts:
        """Level × class counts of A (0) or B (1)."""
        return self.cube().sum(axis=1 - attribute).tolist()  # type: ignore[no-any-return]

    def records(self) -> TableRecords:
        cells = product(*map(range, self.levels))
        rows = [cell for cell, n in zip(cells, self.table, strict=True) for _ in range(n)]
        columns = np.array(rows, dtype=np.uint8).reshape(-1, 3).T.copy()
        return TableRecords(dict(zip("ABC", columns, strict=True)), {})


@cache
def table_universe(kind: str, relation: NeighbouringRelation, rows: int, *levels: int) -> Universe:
    a, b, c = levels
    listed = tables.members(relation, a * b * c, rows)
    members = [Member(table, (a, b, c)) for table in listed]
    attributes = tuple(
        CategoricalAttribute(name, tuple(map(str, range(size))))
        for name, size in zip("ABC", levels, strict=True)
    )
    domain = (
        TableDomain(attributes, rows=rows)
        if relation is REPLACE
        else TableDomain(attributes, max_rows=rows)
    )
    return Universe(
        dataset=Dataset("table", relation, domain),
        candidates=CANDIDATES[kind],
        members=members,
        records=[member.records() for member in members],
        pairs=tables.neighbour_pairs(relation, listed),
    )


def hits(member: Member, tree: int, positive: bool) -> tuple[int, int]:
    """(TP, P) or (TN, N) of a tree of ``CANDIDATES``."""
    cube = member.cube().sum(axis=1)
    here = cube[:, :1] if positive else cube[:, 1:]
    labels = list(product(LEAVES, repeat=2))[tree]
    right = [label == ("0" if positive else "1") for label in labels]
    return int(here[:1].sum() * right[0] + here[1:].sum() * right[1]), int(here.sum())


def rate(member: Member, tree: int, positive: bool) -> Fraction:
    hit, total = hits(member, tree, positive)
    return Fraction(hit, total) if total else Fraction(1, 2)


def _gain(member: Member, v: int) -> Fraction:
    return tables.exact_information_gain(member.counts(v))


def _gain_steps(member: Member, v: int, bits: int) -> int:
    return tables.information_gain(member.counts(v), bits)


def _rows(dataset: Dataset) -> Fraction:
    """Each row is half a step in its cell and half a step in its level."""
    assert isinstance(dataset.domain, TableDomain)
    return Fraction(dataset.domain.rows or dataset.domain.max_rows or 0)


def _levels(dataset: Dataset) -> Fraction:
    assert isinstance(dataset.domain, TableDomain)
    return Fraction(max(len(a.levels) for a in dataset.domain.attributes[:2]))


DEFINITIONS: dict[str, Callable[[Any, int], Fraction]] = {
    "information_gain": _gain,
    "mutual_information": _gain,
    "gini": lambda member, v: tables.exact_gini(member.counts(v)),
    "max": lambda member, v: Fraction(tables.commonest(member.counts(v), 0)),
    "count": lambda member, v: Fraction(int(member.cube()[v].sum())),
    "true_positive_rate": lambda member, v: rate(member, v, True),
    "true_negative_rate": lambda member, v: rate(member, v, False),
    "true_positives": lambda member, v: Fraction(hits(member, v, True)[0]),
    "true_negatives": lambda member, v: Fraction(hits(member, v, False)[0]),
}

ROUNDED: dict[str, tuple[Callable[[Any, int, int], int], Callable[[Dataset], Fraction]]] = {
    "information_gain": (_gain_steps, _rows),
    "mutual_information": (_gain_steps, _rows),
    "gini": (lambda member, v, bits: tables.gini(member.counts(v), bits), _levels),
}

FAMILIES = {
    (kind, relation): Family(partial(table_universe, kind, relation), sizes, slow, tiny)
    for relation in (ADD_REMOVE, REPLACE)
    for kind, sizes, slow, tiny in (
        (
            "attributes",
            [(1, 2, 2, 2), (2, 2, 1, 2), (2, 3, 2, 2), (2, 2, 1, 3)],
            [(3, 2, 2, 2), (6, 2, 1, 2), (4, 2, 2, 2), (4, 3, 1, 2)],
            [(2, 2, 2, 2)],
        ),
        ("values", [(1, 2, 1, 1), (4, 2, 1, 1), (4, 3, 1, 1)], [(8, 3, 1, 1)], [(3, 3, 1, 1)]),
        (
            "trees",
            [(1, 2, 1, 2), (2, 2, 1, 2), (4, 2, 1, 2), (3, 2, 1, 3)],
            [(8, 2, 1, 2), (5, 3, 1, 2)],
            [(2, 2, 1, 2)],
        ),
    )
}
