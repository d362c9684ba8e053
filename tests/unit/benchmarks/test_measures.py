"""What the benches of selections measure, on cases worked out by hand."""

from __future__ import annotations

import pytest

from benchmarks.reproduction.experiments.pareto_nodes import (
    median_dominators,
    points,
    true_top,
)
from benchmarks.selections.cases import BETWEENNESS, Case, true_order
from mechanisms.model.sensitivity import Sensitivity
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of

#: A graph of five nodes: the triangle 0-1-2 with the tail 2-3-4.
KITE = Case(
    "kite",
    dataset_of(5, 4),
    records_of(graph_of(5, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)])),
)


def test_the_true_top_breaks_ties_by_degree_then_density_then_order() -> None:
    """Degrees 2, 2, 3, 2, 1 and densities 1, 1, 1/3, 0, 0: the first three are undominated."""
    at = points(KITE)
    assert at[0].tolist() == [2, 2, 3, 2, 1]
    assert true_top(KITE, at).tolist() == [2, 0, 1]


def test_the_median_of_dominators_goes_from_that_of_all_nodes_to_none() -> None:
    """Four of seven nodes are ends of single edges, which the three of a triangle beat."""
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (5, 6)]
    case = Case("triangle", dataset_of(7, 6), records_of(graph_of(7, edges)))
    assert median_dominators(case, Sensitivity.GLOBAL, 1e-6) == 3
    assert median_dominators(case, Sensitivity.GLOBAL, 1e3) == 0


def test_with_a_large_loss_the_private_top_is_the_true_one() -> None:
    for line in KITE.lines(BETWEENNESS, 2, [1e4], true_order(KITE)[:2]).values():
        assert line == [(pytest.approx(1), 0)]
