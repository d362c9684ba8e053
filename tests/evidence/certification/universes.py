"""Every dataset of a small universe with its neighbours, and the values of a utility on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.dampening import scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Grid, Measurement
from tests.evidence.certification import graphs, table_universes
from tests.evidence.certification.family import Array, Family, Size, Universe


@cache
def graph_universe(nodes: int, max_degree: int) -> Universe:
    members = list(graphs.all_graphs(nodes, max_degree))
    number = {graph: i for i, graph in enumerate(members)}
    pairs = [
        (i, number[other])
        for i, graph in enumerate(members)
        for a, b in combinations(range(nodes), 2)
        if not graph[a] >> b & 1 and (other := graphs.flipped(graph, a, b)) in number
    ]
    return Universe(
        dataset=graphs.dataset_of(nodes, max_degree),
        candidates=AllNodes(),
        members=members,
        records=[graphs.records_of(graph) for graph in members],
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
    )


#: The families of small datasets, by kind of candidates and neighbouring relation. A utility with a
#: new kind of candidates needs a family here.
FAMILIES: dict[tuple[str, NeighbouringRelation], Family] = {
    ("nodes", NeighbouringRelation.EDGE): Family(
        build=graph_universe,
        sizes=[*((nodes, bound) for nodes in range(1, 5) for bound in range(nodes)), (5, 2)],
        larger=[(5, 0), (5, 1), (5, 3), (5, 4)],
        slow=[(6, 5)],
        tiny=[(2, 1), (3, 2), (4, 3)],
    ),
    **table_universes.FAMILIES,
}

#: For each utility: its exact value for one candidate of one dataset, by its definition, as a
#: fraction.
DEFINITIONS: dict[str, Callable[[Any, int], Fraction]] = {
    "degree": graphs.degree,
    "egocentric_density": graphs.egocentric_density,
    "egocentric_betweenness": graphs.egocentric_betweenness,
    "core_number": graphs.core_number,
    "h_index": graphs.h_index,
    **table_universes.DEFINITIONS,
}

#: Utilities whose terms are rounded one by one. Each has a function for the rounded value in steps
#: of a grid, and one for the largest error. All other utilities are rounded down once.
ROUNDED: dict[str, tuple[Callable[[Any, int, int], int], Callable[[Dataset], Fraction]]] = {
    "egocentric_betweenness": (graphs.stored_betweenness, graphs.most_rounding),
    **table_universes.ROUNDED,
}


@dataclass(frozen=True)
class Table:
    """u (datasets, candidates) and δ (datasets, t = 0 … T + 1, candidates), in grid steps."""

    utilities: Array
    delta: Array
    shortfall: Array
    cap: int
    horizon: int


def public_grid(name: str, universe: Universe, sensitivity: Sensitivity, bits: int | None) -> Grid:
    grid = UTILITIES[name].grid(universe.dataset, universe.candidates, sensitivity)
    return grid if bits is None else grid.coarser(min(bits, grid.bits))


@cache
def _measurements(
    name: str,
    relation: NeighbouringRelation,
    size: Size,
    sensitivity: Sensitivity,
    bits: int | None,
) -> list[Measurement]:
    """The measurement of every dataset, on the utility's own grid or a coarser one."""
    universe = universe_of(name, relation, size)
    grid = public_grid(name, universe, sensitivity, bits)
    return [
        UTILITIES[name].measure(records, universe.dataset, universe.candidates, sensitivity, grid)
        for records in universe.records
    ]


@cache
def tabulate(
    name: str,
    relation: NeighbouringRelation,
    size: Size,
    sensitivity: Sensitivity,
    bits: int | None = None,
) -> Table:
    """The utility and its δ on every dataset, on its own grid or a coarser one."""
    universe = universe_of(name, relation, size)
    grid = public_grid(name, universe, sensitivity, bits)
    everyone = np.arange(universe.candidates.count(universe.dataset))
    utilities, deltas, shortfalls = [], [], []
    for measured in _measurements(name, relation, size, sensitivity, bits):
        delta = measured.delta
        assert (delta.cap, delta.horizon) in {(grid.cap, grid.horizon), (grid.cap, 1)}
        if sensitivity is Sensitivity.FLATTENED:
            rows = [np.full(everyone.shape, delta.largest(t)) for t in range(grid.horizon + 2)]
        else:
            rows = [delta.at(t, everyone) for t in range(grid.horizon + 2)]
        utilities.append(measured.utilities)
        deltas.append(np.stack(rows))
        shortfalls.append(delta.shortfall())
    return Table(
        np.stack(utilities), np.stack(deltas), np.stack(shortfalls), grid.cap, grid.horizon
    )


@cache
def tabulate_scores(
    name: str,
    relation: NeighbouringRelation,
    size: Size,
    sensitivity: Sensitivity,
    score_bits: int,
    direction: int,
    bits: int | None = None,
) -> Array:
    """The scores of every dataset, shape (datasets, candidates)."""
    universe = universe_of(name, relation, size)
    grid = public_grid(name, universe, sensitivity, bits)
    return np.stack(
        [
            scores(measured, grid, sensitivity, score_bits, 1 if direction > 0 else -1)
            for measured in _measurements(name, relation, size, sensitivity, bits)
        ]
    )


def universe_of(name: str, relation: NeighbouringRelation, size: Size) -> Universe:
    return FAMILIES[UTILITIES[name].candidates, relation].build(*size)
