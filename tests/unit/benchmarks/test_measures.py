"""What the benches of selections measure, on cases worked out by hand; and on real graphs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench import Setting
from benchmarks.reproduction.experiments.pareto_nodes import points, true_top
from benchmarks.result import Verdict
from benchmarks.selections.cases import Case, likely, repeated_draws
from benchmarks.selections.recall import BENCHES, recalls
from mechanisms.model.sensitivity import Sensitivity
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.data import data_file

#: A triangle with a tail: 0-1-2, and 2-3-4.
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


def test_with_a_large_loss_the_private_top_is_the_true_one() -> None:
    for sensitivity in Sensitivity:
        assert recalls(KITE, sensitivity, 2, 1e4, 3).tolist() == [1, 1, 1]


def test_who_is_left_out_of_draws_is_never_drawn() -> None:
    result = np.array([0, 1, 2, 1000]) << 20
    assert likely(result, 20, 1, 1.0).tolist() == [3]
    assert likely(result, 20, 2, 1.0).tolist() == [0, 1, 2, 3]
    assert repeated_draws(result, 1, 1.0, 5).tolist() == [[3]] * 5


@pytest.mark.slow
@pytest.mark.data
def test_real_graphs_meet_the_expectations() -> None:
    (bench,) = BENCHES
    setting = Setting(data_file("github.edges.csv.gz").parent, quick=True)
    verdicts = [claim.verdict for claim in bench.judged(bench.run(setting), setting)]
    assert len(verdicts) == 8
    assert Verdict.FAILS not in verdicts
