"""What is said of the real graphs and salaries where their statistics are explained."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.data.graphs import read_edge_list
from benchmarks.data.tables import read_salaries
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.model.executor import Inline
from tests.support.data import FOLDER, data_file


@pytest.mark.parametrize(
    ("name", "shared", "further"),
    [
        ("enron", 420, 1_501),
        ("github", 2_411, 11_719),
        pytest.param("gowalla", 1_297, 15_050, marks=pytest.mark.slow),
    ],
)
def test_the_pair_that_shares_most(name: str, shared: int, further: int) -> None:
    """Its other neighbours: up to so many flips, LS of triangles is exactly a_max + s."""
    data_file(f"{name}.edges.csv.gz")
    indptr, indices = compressed_rows(*read_edge_list(FOLDER, name))
    co_degree = prepare_graph(indptr, indices, Inline())["co_degree"]
    totals = prepare_totals(indptr, indices, co_degree, Inline())
    assert max(totals["edge_maximum"][0], totals["open_maximum"][0]) == shared
    rows = {
        v: set(indices[indptr[v] : indptr[v + 1]].tolist())
        for v in np.flatnonzero(co_degree == shared).tolist()
    }
    result = [
        len(rows[v] ^ rows[w]) - 2 * (w in rows[v])
        for v, w in combinations(rows, 2)
        if len(rows[v] & rows[w]) == shared
    ]
    assert max(result) == further


def test_the_tied_salaries() -> None:
    data_file("sf_salaries.csv.gz")
    pay = read_salaries(FOLDER)
    assert (len(pay), np.count_nonzero(pay == 0), np.count_nonzero(pay < 0)) == (148_654, 368, 1)
