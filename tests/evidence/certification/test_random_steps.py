"""Egocentric betweenness beyond enumeration: steps around one centre, where loss turns quadratic.

The quadratic half of the co-degree form first decides at 8 nodes (D = 7), too many to enumerate.
Here every single-edge change of random graphs of 8 to 13 nodes is tried and judged at one centre;
half of the graphs are built around two hubs with shared neighbours, where most is to be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random

import numpy as np
import pytest

from mechanisms.model.candidates import AllNodes
from mechanisms.model.records import GraphRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.selection.dampening import scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Grid
from tests.evidence.certification import checks, graphs
from tests.evidence.certification.graphs import Graph, dataset_of, flipped, graph_of, highest_degree

STEPS = 10_000
CENTRE = 0
BOUNDS = (7, 8, 9, 10)
EBC = UTILITIES["egocentric_betweenness"]


def random_graph(rng: Random, bound: int) -> Graph:
    """A graph of bounded degree; about half of them have a second hub opposite the centre."""
    nodes = rng.randint(max(8, bound + 1), 13)
    core = []
    if rng.random() < 0.5:
        shared = rng.sample(range(2, nodes), rng.randint(bound - 3, min(bound, nodes - 2)))
        core += [(hub, v) for hub in (CENTRE, 1) for v in shared]
        density = rng.choice([0.0, 0.05, 0.2])
    else:
        core += [(CENTRE, v) for v in rng.sample(range(1, nodes), bound)]
        density = rng.random()
    others = [pair for pair in combinations(range(nodes), 2) if rng.random() < density]
    rng.shuffle(others)
    graph = graph_of(nodes, [])
    for a, b in core + others:
        if not graph[a] >> b & 1 and max(graph[a].bit_count(), graph[b].bit_count()) < bound:
            graph = flipped(graph, a, b)
    return graph


@dataclass(frozen=True)
class Steps:
    """The columns of the centre in every graph met, and which of them are neighbours."""

    records: GraphRecords
    pairs: Integers


@cache
def steps(bound: int) -> Steps:
    """A quarter of all steps: complete neighbourhoods of random graphs with this bound."""
    rng = Random(20_000 + bound)
    columns: list[tuple[int, int, int, int]] = []
    pairs: list[tuple[int, int]] = []
    while len(pairs) < STEPS // len(BOUNDS):
        graph = random_graph(rng, bound)
        here = len(columns)
        columns.append(at_centre(graph))
        for a, b in combinations(range(len(graph)), 2):
            other = flipped(graph, a, b)
            if highest_degree(other) <= bound:
                pairs.append((here, len(columns)))
                columns.append(at_centre(other))
    degree, inner, betweenness, shared = (np.array(column) for column in zip(*columns, strict=True))
    nothing = np.zeros(0, dtype=np.int64)
    records = GraphRecords(
        indptr=nothing,
        indices=nothing.astype(np.int32),
        columns={
            "degree": degree.astype(np.int32),
            "inner_edges": inner,
            "egocentric_betweenness": betweenness,
            "co_degree": shared.astype(np.int32),
        },
    )
    return Steps(records, np.array(pairs))


def at_centre(graph: Graph) -> tuple[int, int, int, int]:
    return (
        graph[CENTRE].bit_count(),
        graphs.inner_edges(graph, CENTRE),
        graphs.stored_betweenness(graph, CENTRE),
        graphs.co_degree(graph, CENTRE),
    )


def tables(bound: int, sensitivity: Sensitivity, grid: Grid) -> tuple[Integers, Integers]:
    """u (graphs, 1) and δ (graphs, t, 1) of the centre: these utilities are node by node."""
    records = steps(bound).records
    measured = EBC.measure(records, dataset_of(13, bound), AllNodes(), sensitivity, grid)
    everyone = np.arange(measured.utilities.size)
    rows = [measured.delta.at(t, everyone) for t in range(grid.horizon + 2)]
    return measured.utilities[:, None], np.stack(rows, axis=1)[:, :, None]


@pytest.mark.parametrize("bits", [26, 3, 2, 1])
@pytest.mark.parametrize("sensitivity", [Sensitivity.LOCAL, Sensitivity.SHIFTED])
@pytest.mark.parametrize("bound", BOUNDS)
def test_both_forms_of_delta_are_admissible(
    bound: int, sensitivity: Sensitivity, bits: int
) -> None:
    grid = EBC.grid(dataset_of(13, bound), AllNodes(), sensitivity).coarser(bits)
    utilities, delta = tables(bound, sensitivity, grid)
    pairs = steps(bound).pairs
    assert checks.admissibility_breach(utilities, delta, pairs) is None
    assert checks.shape_breach(delta, grid.cap, grid.horizon) is None


@pytest.mark.parametrize("score_bits", [0, 4, 20])
@pytest.mark.parametrize(
    "sensitivity, direction",
    [
        (Sensitivity.GLOBAL, 1),
        (Sensitivity.LOCAL, 1),
        (Sensitivity.SHIFTED, 1),
        (Sensitivity.SHIFTED, -1),
    ],
)
@pytest.mark.parametrize("bound", BOUNDS)
def test_scores_differ_by_one_unit_at_most(
    bound: int, sensitivity: Sensitivity, direction: int, score_bits: int
) -> None:
    dataset = dataset_of(13, bound)
    grid = EBC.grid(dataset, AllNodes(), sensitivity)
    everything = steps(bound)
    measured = EBC.measure(everything.records, dataset, AllNodes(), sensitivity, grid)
    column = scores(measured, grid, sensitivity, score_bits, 1 if direction > 0 else -1)
    assert checks.largest_change(column[:, None], everything.pairs) <= 1 << score_bits


def test_the_steps_reach_the_cap_and_catch_a_delta_without_its_quadratic_half() -> None:
    """The run has teeth: the true Δ is attained, and the linear half alone is refused."""
    for bound in BOUNDS:
        grid = EBC.grid(dataset_of(13, bound), AllNodes(), Sensitivity.LOCAL)
        utilities, delta = tables(bound, Sensitivity.LOCAL, grid)
        everything = steps(bound)
        assert everything.pairs.shape[0] >= STEPS // len(BOUNDS)
        assert checks.largest_change(utilities, everything.pairs) == grid.cap
        degree = everything.records.columns["degree"].astype(np.int64)[:, None, None]
        t = np.arange(delta.shape[1])[None, :, None]
        linear = np.minimum(degree + t, bound - 1) << grid.bits
        breach = checks.admissibility_breach(utilities, linear, everything.pairs)
        assert breach is not None
        assert breach.rule == "A1"
