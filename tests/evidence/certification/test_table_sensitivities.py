"""δ of information gain, Gini and rates on every table of larger universes, one attribute each.

u and δ of an attribute depend on its own counts alone, so every table of a universe is measured
as one candidate of a long list. The shared contract tests do the same from records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest

from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.sensitivity import Integers, Sensitivity, SensitivityFunction
from mechanisms.selection.dampening import (
    dampened_scores,
    flattened_scores,
    global_scores,
    shifted_scores,
)
from mechanisms.utilities.covering import Stepwise
from mechanisms.utilities.gini import Gini
from mechanisms.utilities.information_gain import InformationGain
from mechanisms.utilities.tree_rates import TruePositiveRate
from mechanisms.utilities.utility import Grid, Measurement
from tests.evidence.certification import checks, tables
from tests.evidence.certification.checks import Array
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE

Relation = NeighbouringRelation
Shape = tuple[int, int, int]  # The numbers of levels, classes and rows of a small table.

#: Shapes (levels, classes, rows) of which every table is checked. Under add/remove a table has at
#: most this many rows, under replace exactly as many.
SHAPES: list[Shape] = [(1, 2, 1), (1, 2, 2), (2, 2, 8), (3, 2, 8), (2, 3, 8), (3, 3, 5), (1, 2, 45)]
SLOW: list[Shape] = [(3, 3, 8), (1, 2, 120), (2, 2, 14), (1, 4, 14)]

every_relation = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
every_shape = pytest.mark.parametrize(
    "shape", [*SHAPES, *(pytest.param(shape, marks=pytest.mark.slow) for shape in SLOW)], ids=str
)
GRIDS = (0, 1, 2, 5, 32)


def dataset_of(relation: Relation, rows: int) -> Dataset:
    return Dataset("table", relation, TableDomain((), rows=rows, max_rows=rows))


@cache
def universe(relation: Relation, shape: Shape) -> tuple[list[tables.Table], Array]:
    levels, classes, rows = shape
    listed = tables.members(relation, levels * classes, rows)
    return listed, tables.neighbour_pairs(relation, listed)


@dataclass(frozen=True)
class Measures:
    measured: Measurement
    grid: Grid
    pairs: Array

    @property
    def utilities(self) -> Array:
        return self.measured.utilities[:, None]

    @property
    def delta(self) -> Array:
        everyone = np.arange(len(self.utilities))
        distances = range(self.grid.horizon + 2)
        return np.stack([self.measured.delta.at(t, everyone) for t in distances], axis=1)[..., None]


@cache
def measures(
    utility: InformationGain | Gini, relation: Relation, shape: Shape, bits: int
) -> Measures:
    levels, classes, rows = shape
    listed, pairs = universe(relation, shape)
    grid = utility.table_grid(rows).coarser(bits)
    counts = [np.array(table).reshape(levels, classes) for table in listed]
    measured = utility.of_tables(counts, dataset_of(relation, rows), Sensitivity.LOCAL, grid)
    return Measures(measured, grid, pairs)


UTILITIES = (InformationGain(), Gini())
FORMULAS = {"information_gain": tables.information_gain, "gini": tables.gini}


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
@every_relation
@every_shape
def test_delta_is_admissible(
    utility: InformationGain | Gini, relation: Relation, shape: Shape
) -> None:
    for bits in GRIDS:
        readings = measures(utility, relation, shape, bits)
        delta, grid = readings.delta, readings.grid
        assert checks.admissibility_breach(readings.utilities, delta, readings.pairs) is None, bits
        assert checks.shape_breach(delta[..., 0], grid.cap, grid.horizon) is None, bits
        missing = (grid.cap - delta[:, : grid.horizon, 0]).sum(axis=1)
        assert (readings.measured.delta.shortfall() == missing).all(), bits
        assert np.abs(readings.utilities).max() <= grid.largest, bits
        attained = checks.largest_change(readings.utilities, readings.pairs)
        if bits == 32:
            assert attained == grid.cap or (attained == 0 and grid.cap == 1)
        else:
            assert attained <= grid.cap, bits


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
@every_relation
@every_shape
def test_scores_move_by_one_unit_at_most(
    utility: InformationGain | Gini, relation: Relation, shape: Shape
) -> None:
    for bits, q in product(GRIDS, (0, 3, 20)):
        readings = measures(utility, relation, shape, bits)
        u, delta, grid = readings.measured.utilities, readings.measured.delta, readings.grid
        for scores in (
            global_scores(u, grid.cap, q),
            dampened_scores(u, delta, q),
            shifted_scores(u, delta, q, 1),
            shifted_scores(u, delta, q, -1),
        ):
            assert checks.largest_change(scores, readings.pairs) <= 1 << q, (bits, q)


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
@every_relation
@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_utilities_follow_their_definition(
    utility: InformationGain | Gini, relation: Relation, shape: Shape
) -> None:
    listed, _ = universe(relation, shape)
    for bits in (0, 3, 32):
        utilities = measures(utility, relation, shape, bits).measured.utilities
        expected = [
            FORMULAS[utility.name](np.array(table).reshape(shape[:2]).tolist(), bits)
            for table in listed
        ]
        assert utilities.tolist() == expected


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
@every_relation
def test_a_node_of_a_tree_keeps_the_public_bound(
    utility: InformationGain | Gini, relation: Relation
) -> None:
    """Its own records are some of N: a replacement may add one there, remove one, or both."""
    rows = 7
    listed = tables.members(ADD_REMOVE, 4, rows)
    pairs = np.concatenate([tables.neighbour_pairs(r, listed) for r in {ADD_REMOVE, relation}])
    for bits in (1, 32):
        grid = utility.table_grid(rows).coarser(bits)
        counts = [np.array(table).reshape(2, 2) for table in listed]
        measured = utility.of_tables(counts, dataset_of(relation, rows), Sensitivity.LOCAL, grid)
        readings = Measures(measured, grid, pairs)
        assert checks.admissibility_breach(readings.utilities, readings.delta, pairs) is None


def exact_local_sensitivities(utilities: Array, pairs: Array, horizon: int) -> Array:
    """LS(x, t): the largest change between neighbours within distance t of x, (datasets, t)."""
    here = np.zeros(len(utilities), dtype=np.int64)
    change = np.abs(utilities[pairs[:, 0]] - utilities[pairs[:, 1]])
    for side in (0, 1):
        np.maximum.at(here, pairs[:, side], change)
    layers = [here]
    for _ in range(horizon):
        wider = layers[-1].copy()
        for a, b in ((0, 1), (1, 0)):
            np.maximum.at(wider, pairs[:, a], layers[-1][pairs[:, b]])
        layers.append(wider)
    return np.stack(layers, axis=1)


@pytest.mark.parametrize("shape", [(1, 2, 16), (2, 2, 8), (1, 3, 9), (2, 3, 6)], ids=str)
def test_information_gain_is_exact_under_add_remove(shape: Shape) -> None:
    """As long as the bound on rows is not in reach δ is the local sensitivity, up to rounding."""
    readings = measures(InformationGain(), ADD_REMOVE, shape, 32)
    listed, pairs = universe(ADD_REMOVE, shape)
    horizon = shape[2] - 2
    exact = exact_local_sensitivities(readings.measured.utilities, pairs, horizon)
    rows = np.array([sum(table) for table in listed])
    for t in range(horizon):
        inside = rows + t < shape[2]
        excess = readings.delta[inside, t, 0] - exact[inside, t]
        assert (excess >= 0).all()
        assert (excess <= 2 * t + 3).all()


def test_gini_is_exact_at_distance_zero_for_two_classes() -> None:
    readings = measures(Gini(), ADD_REMOVE, (2, 2, 8), 32)
    listed, pairs = universe(ADD_REMOVE, (2, 2, 8))
    exact = exact_local_sensitivities(readings.measured.utilities, pairs, 0)[:, 0]
    inside = np.array([sum(table) < 8 for table in listed])
    assert np.abs(readings.delta[inside, 0, 0] - exact[inside]).max() <= 1


# The tests below are about true positive rates. A dataset is (hits, misses, others), where others
# are all remaining records.


@dataclass(frozen=True)
class RateMeasures(Measures):
    states: Array


@cache
def rate_measures(relation: Relation, rows: int, bits: int) -> RateMeasures:
    listed = tables.members(relation, 3, rows)
    pairs = tables.neighbour_pairs(relation, listed)
    states = np.array(listed)
    replaced = relation is REPLACE
    grid = Grid(32, 1 << 32 if replaced else 1 << 31, rows if replaced else rows + 1, 1 << 32)
    grid = grid.coarser(bits)
    hits, totals = states[:, 0], states[:, 0] + states[:, 1]
    measured = TruePositiveRate().of_counts(
        hits, totals, dataset_of(relation, rows), Sensitivity.LOCAL, grid
    )
    return RateMeasures(measured, grid, pairs, states)


@every_relation
@pytest.mark.parametrize("bits", GRIDS)
@pytest.mark.parametrize("rows", [1, 2, 5, 16, pytest.param(40, marks=pytest.mark.slow)])
def test_rates_are_admissible(relation: Relation, rows: int, bits: int) -> None:
    readings = rate_measures(relation, rows, bits)
    delta, grid = readings.delta, readings.grid
    assert checks.admissibility_breach(readings.utilities, delta, readings.pairs) is None
    assert checks.shape_breach(delta[..., 0], grid.cap, grid.horizon) is None
    missing = (grid.cap - delta[:, : grid.horizon, 0]).sum(axis=1)
    assert (readings.measured.delta.shortfall() == missing).all()
    u = readings.measured.utilities
    assert u.tolist() == [tables.rate(h, h + m, bits) for h, m, _ in readings.states.tolist()]
    if bits:
        assert checks.largest_change(readings.utilities, readings.pairs) == grid.cap
    for q in (0, 3, 20):
        for scores in (
            global_scores(u, grid.cap, q),
            dampened_scores(u, readings.measured.delta, q),
            shifted_scores(u, readings.measured.delta, q, 1),
            shifted_scores(u, readings.measured.delta, q, -1),
        ):
            assert checks.largest_change(scores, readings.pairs) <= 1 << q


@every_relation
def test_rates_are_exact(relation: Relation) -> None:
    """δ is the local sensitivity at every distance; under replace but at an empty class."""
    rows, bits = 16, 32
    readings = rate_measures(relation, rows, bits)
    exact = exact_local_sensitivities(readings.measured.utilities, readings.pairs, rows)
    positives = readings.states[:, :2].sum(axis=1)
    full = readings.states.sum(axis=1)
    for t in range(rows):
        # The sensitivity function δ need not be exact for tables that reach the bound on rows under
        # add/remove, and for those without positives under replace.
        inside = full + t < rows if relation is ADD_REMOVE else positives > 0
        excess = readings.delta[inside, t, 0] - exact[inside, t]
        assert (np.abs(excess) <= 1).all()


class Plain(Stepwise):
    """The same δ without its own walk: the scores then ask for one distance after the other."""

    def __init__(self, delta: SensitivityFunction) -> None:
        self.delta, self.cap, self.horizon = delta, delta.cap, delta.horizon

    def at(self, t: int, candidates: Integers) -> Integers:
        return self.delta.at(t, candidates)

    def largest(self, t: int) -> int:
        return self.delta.largest(t)

    def shortfall(self) -> Integers:
        return self.delta.shortfall()


@every_relation
@pytest.mark.parametrize("bits", [0, 2, 32])
def test_walked_steps_are_those_of_delta(relation: Relation, bits: int) -> None:
    measurements: list[Measurement] = [
        measures(utility, relation, shape, bits).measured
        for utility in UTILITIES
        for shape in [(1, 2, 1), (2, 2, 8), (1, 2, 45)]
    ]
    measurements += [rate_measures(relation, rows, bits).measured for rows in (1, 5, 16)]
    for measured in measurements:
        walked, plain = measured.delta, Plain(measured.delta)
        for scale in (1, 7, -30):
            u = measured.utilities * scale
            for score in (dampened_scores, flattened_scores):
                assert (score(u, walked, 9) == score(u, plain, 9)).all()
        one = np.zeros(1, dtype=np.int64)
        assert (walked.passed(np.repeat(one, len(measured.utilities)))[:2] == 0).all()
