"""Grids from public facts, refusals, and the smallest universes there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.kernels.graphs.egocentric import LARGEST_DEGREE
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, NeighbouringRelation, PrefixDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import PrefixRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.dampening import scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.graphs import DEGREES
from mechanisms.utilities.utility import Utility, finest_bits
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of

NODES = {name: utility for name, utility in UTILITIES.items() if utility.candidates == "nodes"}
every_utility = pytest.mark.parametrize("utility", NODES.values(), ids=NODES)
every_sensitivity = pytest.mark.parametrize("sensitivity", list(Sensitivity))


@settings(deadline=None)
@given(units=st.integers(0, 2**61 - 1), most=st.integers(1, 32))
@example(units=0, most=32)
@example(units=2**61 - 1, most=32)
def test_the_finest_grid_is_the_largest_that_fits(units: int, most: int) -> None:
    bits = finest_bits(units, most, DEGREES)
    assert 1 <= bits <= most
    assert units << bits < 2**62
    assert bits == most or units << (bits + 1) >= 2**62


def test_no_grid_at_all_is_refused_in_public_words() -> None:
    with pytest.raises(UnsupportedQuery, match="max_degree"):
        finest_bits(2**61, 32, DEGREES)


@every_utility
@every_sensitivity
@settings(deadline=None)
@given(bound=st.integers(0, LARGEST_DEGREE))
@example(bound=0)
@example(bound=1)
@example(bound=2)
@example(bound=LARGEST_DEGREE)
def test_grids_keep_all_sums_in_64_bits(
    utility: Utility, sensitivity: Sensitivity, bound: int
) -> None:
    grid = utility.grid(dataset_of(LARGEST_DEGREE + 1, bound), AllNodes(), sensitivity)
    assert grid.cap >= 1
    assert grid.horizon >= 1
    assert max(grid.cap, grid.largest) < 2**62
    if sensitivity is Sensitivity.SHIFTED:
        assert grid.cap * grid.horizon < 2**62


@every_sensitivity
def test_betweenness_is_refused_where_its_column_could_overflow(sensitivity: Sensitivity) -> None:
    dataset = dataset_of(LARGEST_DEGREE + 2, LARGEST_DEGREE + 1)
    with pytest.raises(UnsupportedQuery, match="max_degree") as refusal:
        UTILITIES["egocentric_betweenness"].grid(dataset, AllNodes(), sensitivity)
    assert refusal.value.supported == {"max_degree": LARGEST_DEGREE}


@every_utility
def test_other_domains_are_refused(utility: Utility) -> None:
    prefix = Dataset("list", NeighbouringRelation.PREFIX, PrefixDomain((1.0, 2.0)))
    with pytest.raises(UnsupportedQuery) as refusal:
        utility.grid(prefix, AllNodes(), Sensitivity.GLOBAL)
    assert refusal.value.supported == {"kind": "graph"}


@every_utility
def test_other_records_are_an_error_of_the_caller(utility: Utility) -> None:
    dataset = dataset_of(3, 2)
    grid = utility.grid(dataset, AllNodes(), Sensitivity.GLOBAL)
    with pytest.raises(TypeError, match="GraphRecords"):
        utility.measure(PrefixRecords(1), dataset, AllNodes(), Sensitivity.GLOBAL, grid)


@every_utility
@every_sensitivity
@pytest.mark.parametrize("nodes, bound", [(1, 0), (3, 0), (3, 1)])
def test_where_no_change_matters_all_scores_are_alike(
    utility: Utility, sensitivity: Sensitivity, nodes: int, bound: int
) -> None:
    if utility.name in ("degree", "core_number", "h_index") and bound:
        assert utility.grid(dataset_of(nodes, bound), AllNodes(), sensitivity).cap == 1
        return
    graph = graph_of(nodes, [(0, 1)] if bound else [])
    dataset = dataset_of(nodes, bound)
    grid = utility.grid(dataset, AllNodes(), sensitivity)
    measured = utility.measure(records_of(graph), dataset, AllNodes(), sensitivity, grid)
    actual = scores(measured, grid, sensitivity, 20, utility.direction)
    assert actual.tolist() == [0] * nodes


@every_utility
def test_measuring_leaves_the_prepared_columns_alone(utility: Utility) -> None:
    records = records_of(graph_of(4, [(0, 1), (0, 2), (1, 2), (0, 3)]))
    before = {name: column.copy() for name, column in records.columns.items()}
    for column in records.columns.values():
        column.flags.writeable = False
    dataset = dataset_of(4, 3)
    for sensitivity in Sensitivity:
        grid = utility.grid(dataset, AllNodes(), sensitivity)
        measured = utility.measure(records, dataset, AllNodes(), sensitivity, grid)
        assert measured.utilities.dtype == np.int64
        scores(measured, grid, sensitivity, 20, utility.direction)
    for name, column in records.columns.items():
        assert (column == before[name]).all()


@every_utility
def test_the_catalogue_can_print_it(utility: Utility) -> None:
    assert utility.title
    assert utility.description.endswith(".")
    assert utility.source
    assert utility.candidates == "nodes"
    assert utility.relations == {NeighbouringRelation.EDGE}
    assert utility.direction == 1
