"""Values computed by hand or by independent enumeration, to all their digits."""

from __future__ import annotations

from math import ldexp, log2

import numpy as np
import pytest

from mechanisms.distances.context_scores import (
    ContextSensitivity,
    dampened,
    largest_change,
    unit_steps,
)
from mechanisms.distances.entropies import entropy_grid, entropy_steps
from mechanisms.distances.metric import distance_matrix, embedding
from mechanisms.distances.uncertainty import dependency, projected, table_uncertainty
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.selection.laws import exponential_probabilities
from mechanisms.utilities.entropy_table import entropy_sums, increments
from mechanisms.utilities.information_gain import InformationGain

COUNTS = np.array([[3, 1], [0, 2]])


def dataset(relation: str, rows: int, least: int = 0) -> Dataset:
    attributes = (CategoricalAttribute("x", ("0", "1")), CategoricalAttribute("y", ("0", "1")))
    domain = (
        TableDomain(attributes, rows=rows)
        if relation == "replace"
        else TableDomain(attributes, max_rows=rows, min_rows=least)
    )
    return Dataset("small", NeighbouringRelation(relation), domain)


@pytest.mark.parametrize(
    "n, phi", [(2, 2.0), (3, 2.754888), (5, 3.609640), (10, 4.689956), (100, 8.079314)]
)
def test_phi(n: int, phi: float) -> None:
    assert ldexp(int(increments(n - 1, n, 32)[0]), -32) == pytest.approx(phi, abs=1e-6)


@pytest.mark.parametrize(
    "rows, exact",
    [(2, 1.0), (5, 0.72192809), (10, 0.46899559), (100, 0.08079314), (1000, 0.01140776)],
)
def test_sensitivity_of_entropy(rows: int, exact: float) -> None:
    """On its grid it is rounded up by one step at most, far below the printed bound."""
    for public in (dataset("replace", rows), dataset("add_remove", 10 * rows, rows - 1)):
        grid = entropy_grid(public)
        above = ldexp(grid.sensitivity, -grid.bits) - exact
        assert -1e-8 < above <= 2.0**-grid.bits * 1.01


def test_entropies_are_those_of_the_tables() -> None:
    grid = entropy_grid(dataset("replace", 6))
    tables = [COUNTS, COUNTS.sum(axis=0), COUNTS.sum(axis=1), np.array([6, 0]), np.zeros(2, int)]
    expected = [1.4591479, 1.0, 0.9182958, 0.0, 0.0]
    entropies = np.ldexp(entropy_steps(tables, 6, grid), -grid.bits)
    assert entropies == pytest.approx(expected, abs=2.0**-grid.bits * 1.01)


def test_mean_su_needs_a_lower_bound_under_add_remove() -> None:
    with pytest.raises(UnsupportedQuery):
        entropy_grid(dataset("add_remove", 10))
    one = entropy_grid(dataset("add_remove", 10, 1))
    assert ldexp(one.sensitivity, -one.bits) == pytest.approx(1, abs=2.0**-one.bits * 1.1)


def sensitivity(counts: np.ndarray, rows: int, replace: bool) -> tuple[ContextSensitivity, int]:
    grid = InformationGain().table_grid(rows)
    delta = ContextSensitivity(
        RarestPairs.of([counts]).merged(),
        entropy_sums(rows, grid.bits),
        unit_steps(counts.shape[1], grid),
        replace,
        largest_change(rows, grid),
        rows,
        most_pairs=len(counts),
    )
    return delta, grid.bits


def test_dampening() -> None:
    replace, bits = sensitivity(COUNTS, 6, True)
    u = ldexp(1, -bits) * replace.at(np.arange(4))
    assert u == pytest.approx([3.245112, 3.609640, 3.900135, 3.900135], abs=1e-6)
    either, _ = sensitivity(COUNTS, 100, False)
    ls = ldexp(1, -bits) * (either.at(np.arange(4)) + either.unit)
    assert ls == pytest.approx([3.245112, 3.609640, 3.900135, 4.141709], abs=1e-6)
    sums = entropy_sums(6, bits)
    q = int(sums[COUNTS].sum() - sums[COUNTS.sum(axis=1)].sum())
    assert ldexp(q, -bits) == pytest.approx(-3.2451125)
    assert dependency(COUNTS) == pytest.approx(-3.2451125 / 6)
    scores = dampened(np.array([q + 6 * replace.unit]), replace, 20)
    assert ldexp(int(scores[0]), -20) == pytest.approx(0.8489344, abs=1e-6)


def test_full_tables_gain_by_dampening() -> None:
    """A and B of 6,000 records at ε = 1: the better of two is found far more often."""
    a = np.full((3, 3), 650) + 50 * np.eye(3, dtype=int)
    b = np.full((3, 3), 620) + 140 * np.eye(3, dtype=int)
    grid = InformationGain().table_grid(6000)
    sums = entropy_sums(6000, grid.bits)
    q = np.array([int(sums[t].sum() - sums[t.sum(axis=1)].sum()) for t in (a, b)])
    cap, unit = largest_change(6000, grid), unit_steps(3, grid)
    delta = ContextSensitivity(RarestPairs.of([a, b]).merged(), sums, unit, True, cap, 6000, 6)
    local = dampened(q + 6000 * unit, delta, 20) / 2**20
    exact = q / cap
    for scores, expected in ((exact, 0.784), (local, 0.99997)):
        assert 1 / (1 + np.exp((scores[0] - scores[1]) / 2)) == pytest.approx(expected, abs=1e-3)
    assert exponential_probabilities([0, 0], 0.5) == [0.5, 0.5]


def test_distances() -> None:
    """Rows are values of the target here; negative counts are nothing."""
    table = np.array([[4, 1, 0], [2, -3, 5], [0, 1, 5]]).T
    matrix = distance_matrix(embedding([table]))
    assert matrix[0, 1] == pytest.approx(0.451335, abs=1e-6)
    assert matrix[0, 2] == pytest.approx(0.481125, abs=1e-6)
    assert matrix[1, 2] == pytest.approx(0.346944, abs=1e-6)
    assert table_uncertainty(table) == pytest.approx(0.409673854)


def test_an_empty_level_counts_in_the_denominator() -> None:
    table = np.array([[1, 0], [0, 0]])
    matrix = distance_matrix(embedding([table]))
    assert matrix.diagonal().tolist() == [0, 0]
    assert matrix[0, 1] == matrix[1, 0] == pytest.approx(0.5**0.5)
    assert (distance_matrix(embedding([np.zeros((2, 2), int)])) == 0).all()


def test_noisy_entropies_are_moved_to_the_range_of_true_ones() -> None:
    """[0, log₂ of the levels], and [the larger one, the sum] for a pair."""
    assert projected(0.4, 0.7, 0.9, 2, 4) == (0.4, 0.7, 0.9)
    assert projected(-0.5, 5.0, 0.1, 2, 3) == (0.0, log2(3), log2(3))
    assert projected(5.0, -0.5, 9.0, 4, 3) == (2.0, 0.0, 2.0)
    assert projected(0.4, 0.7, 9.0, 2, 4) == (0.4, 0.7, 0.4 + 0.7)
