"""What the benchmarks of selections measure, on cases worked out by hand; and on real graphs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import pareto_measure, weighted_recall
from benchmarks.selections import Case, Verdicts, interval, likely, repeated_draws
from mechanisms.model.sensitivity import Sensitivity
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.data import data_file

#: A triangle with a tail: 0-1-2, and 2-3-4.
KITE = Case(
    "kite",
    dataset_of(5, 4),
    records_of(graph_of(5, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)])),
)


def columns(*points: tuple[int, int]) -> np.ndarray:
    return np.array(points).T


@pytest.mark.parametrize(
    ("best", "drawn", "share"),
    [
        ([(2, 2)], [(1, 1), (2, 1), (3, 0)], 1 / 3),
        ([(1, 1)], [(1, 1)], 0),
        ([(0, 9), (5, 5)], [(4, 4), (4, 4)], 1),
    ],
)
def test_the_measure_counts_those_who_are_beaten_in_everything(
    best: list[tuple[int, int]], drawn: list[tuple[int, int]], share: float
) -> None:
    found = pareto_measure.measure(columns(*best), columns(*drawn)[:, None, :])
    assert found.tolist() == [share]


def test_the_true_top_breaks_ties_by_degree_then_density_then_order() -> None:
    """Degrees 2, 2, 3, 2, 1 and densities 1, 1, 1/3, 0, 0: the first three are undominated."""
    at = pareto_measure.points(KITE)
    assert at[0].tolist() == [2, 2, 3, 2, 1]
    assert pareto_measure.true_top(KITE, at).tolist() == [2, 0, 1]


def test_with_a_large_loss_the_private_top_is_the_true_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pareto_measure, "EPSILONS", [1e4])
    for sensitivity in pareto_measure.MEASURED:
        (found,) = pareto_measure.measured(KITE, sensitivity, 3)
        assert found.tolist() == [0, 0, 0]
    monkeypatch.setattr(weighted_recall, "EPSILONS", [1e4])
    monkeypatch.setattr(weighted_recall, "K", 2)
    (recall,) = weighted_recall.recalls(KITE, Sensitivity.LOCAL, 3)
    assert recall.tolist() == [1, 1, 1]


def test_who_is_left_out_of_draws_is_never_drawn() -> None:
    found = np.array([0, 1, 2, 1000]) << 20
    assert likely(found, 20, 1, 1.0).tolist() == [3]
    assert likely(found, 20, 2, 1.0).tolist() == [0, 1, 2, 3]
    assert repeated_draws(found, 1, 1.0, 5).tolist() == [[3]] * 5


def test_an_interval_is_the_normal_one() -> None:
    values = np.array([0.0, 1.0] * 50)
    assert interval(values) == pytest.approx(2.5758 * values.std(ddof=1) / 10, rel=1e-4)


LOW, HIGH = np.array([0.0, 0.004, 0.0, 0.004]), np.array([0.99, 1.0, 0.99, 1.0])
#: Verdicts of Pareto: C of local at 20, at 50, less than global, nowhere worse.
FLIPPED = [
    (LOW, HIGH, True),
    (HIGH, HIGH, False),
    (HIGH, LOW, False),
    # Noise around the same mean: no expectation of a difference fails.
    (LOW, LOW[::-1], True),
]


@pytest.mark.parametrize(("local", "whole", "good"), FLIPPED)
def test_verdicts_of_the_measure_fail_when_signs_flip(
    local: np.ndarray, whole: np.ndarray, good: bool
) -> None:
    verdicts, count = Verdicts(), len(pareto_measure.EPSILONS)
    pareto_measure.hold(KITE, [local] * count, [whole] * count, verdicts)
    assert verdicts.ok is good


@pytest.mark.parametrize(("local", "whole", "good"), [(HIGH, LOW, True), (LOW, LOW, False)])
def test_verdicts_of_recall_fail_when_signs_flip(
    monkeypatch: pytest.MonkeyPatch, local: np.ndarray, whole: np.ndarray, good: bool
) -> None:
    monkeypatch.setitem(weighted_recall.REACHED_BY, "kite", 1.0)
    for ours, theirs, verdict in [(local, whole, good), (HIGH, HIGH, False)]:
        verdicts, count = Verdicts(), len(weighted_recall.EPSILONS)
        weighted_recall.hold(KITE, [ours] * count, [theirs] * count, verdicts)
        assert verdicts.ok is verdict


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("graph", ["github", "enron", "dblp"])
@pytest.mark.parametrize("benchmark", [weighted_recall, pareto_measure], ids=["recall", "measure"])
def test_real_graphs_meet_the_expectations(
    benchmark: object, graph: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    folder = data_file(f"{graph}.edges.csv.gz").parent
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path)
    arguments = ["--data", str(folder), "--graphs", graph, "--times", "50"]
    assert benchmark.main(arguments) == 0  # type: ignore[attr-defined]
