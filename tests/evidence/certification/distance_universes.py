"""All tables of few records over some small attributes, the last of which is the target.

Under add/remove the members are all tables of at most that many rows, under replace all of
exactly that many. They are measured with the code of the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np

from mechanisms.distances.contexts import ContextSampler
from mechanisms.distances.options import Context, Options
from mechanisms.distances.plan import Plan, plan
from mechanisms.distances.tables import PairTables, count_pairs
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from tests.evidence.certification import tables
from tests.evidence.certification.checks import Array
from tests.evidence.certification.tables import REPLACE

NAMES = "ABCD"


@dataclass(frozen=True, eq=False)
class Universe:
    """``pairs`` are all neighbours, shape (m, 2); ``members`` are counts of cells."""

    dataset: Dataset
    levels: tuple[int, ...]
    members: list[tables.Table]
    records: list[TableRecords]
    pairs: Array

    @property
    def target(self) -> str:
        return NAMES[len(self.levels) - 1]

    def sizes(self) -> Array:
        return np.array([sum(member) for member in self.members])


@cache
def universe(relation: NeighbouringRelation, rows: int, *levels: int, least: int = 0) -> Universe:
    cells = list(product(*map(range, levels)))
    listed = [m for m in tables.members(relation, len(cells), rows) if sum(m) >= least]
    attributes = tuple(
        CategoricalAttribute(name, tuple(map(str, range(size))))
        for name, size in zip(NAMES, levels, strict=False)
    )
    domain = (
        TableDomain(attributes, rows=rows)
        if relation is REPLACE
        else TableDomain(attributes, max_rows=rows, min_rows=least)
    )
    return Universe(
        dataset=Dataset("table", relation, domain),
        levels=levels,
        members=listed,
        records=[_records(member, cells) for member in listed],
        pairs=tables.neighbour_pairs(relation, listed),
    )


def _records(member: tables.Table, cells: list[tuple[int, ...]]) -> TableRecords:
    rows = [cell for cell, n in zip(cells, member, strict=True) for _ in range(n)]
    columns = np.array(rows, dtype=np.uint8).reshape(-1, len(cells[0])).T.copy()
    return TableRecords(dict(zip(NAMES, columns, strict=False)), {})


def plan_of(
    space: Universe, context: str, sensitivity: Sensitivity, size: int | None = None
) -> Plan:
    options = Options(Context(context), context_size=size, sensitivity=sensitivity)
    return plan(space.dataset, options, space.target)


def all_pairs(space: Universe) -> list[PairTables]:
    """The contingency tables of all pairs of attributes, for every member."""
    public = plan_of(space, "baseline", Sensitivity.GLOBAL)
    every = list(combinations(range(len(space.levels)), 2))
    return [count_pairs(records, public, every, Inline()) for records in space.records]


@cache
def samplers(
    space: Universe, context: str, sensitivity: Sensitivity, size: int
) -> list[ContextSampler]:
    """One sampler per member: to count its tables takes longer than to score them."""
    public = plan_of(space, context, sensitivity, size)
    return [ContextSampler(records, public, Inline()) for records in space.records]


@cache
def context_scores(
    space: Universe, context: str, sensitivity: Sensitivity, size: int, bits: int
) -> Array:
    """The scores of all candidates for the target's context, (members, candidates)."""
    target = len(space.levels) - 1
    drawings = samplers(space, context, sensitivity, size)
    return np.array([drawing.scores(target, bits) for drawing in drawings])


def dampening(space: Universe, context: str, size: int, horizon: int) -> tuple[Array, Array]:
    """u (members, candidates) and δ (members, t, 1) of the target, in grid steps."""
    target = len(space.levels) - 1
    utilities, deltas = [], []
    for drawing in samplers(space, context, Sensitivity.LOCAL, size):
        u, delta = drawing.measured(target)
        utilities.append(u)
        deltas.append(delta.at(np.arange(horizon))[:, None])
    return np.array(utilities), np.array(deltas)
