"""The verdicts on trees fail when a sign flips beyond its interval, and only then."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.tree_data import accuracy
from benchmarks.tree_search import held
from benchmarks.trees import TABLES, Cell, Expected, cells, expectations, run, verdict
from mechanisms.trees.task import Task
from tests.support.data import data_file
from tests.unit.mechanisms.trees.tables import dataset, records

ONE = Cell("acs", 2, "gini", "global", 0.1)
OTHER = Cell("acs", 2, "gini", "local", 0.1)


@pytest.mark.parametrize(
    ("gain", "gap", "ok", "word"),
    [
        (2.0, 0.0, True, "holds"),
        (0.1, 0.0, True, "within noise"),
        (-0.1, 0.0, True, "within noise"),
        (-2.0, 0.0, False, "FAILS"),
        (-2.0, -3.0, True, "holds"),
        (2.0, 3.0, False, "FAILS"),
    ],
)
def test_a_flip_beyond_the_interval_fails(gain: float, gap: float, ok: bool, word: str) -> None:
    noise = np.random.default_rng(0).normal(size=(10, 10))
    found = {ONE: 80 + gain + noise, OTHER: np.full((10, 10), 80.0)}
    good, text = verdict(Expected(ONE, OTHER, gap), found)
    assert good is ok
    assert word in text


def test_a_gap_is_held_by_its_margin() -> None:
    assert held("x", 1.0, 0.5)
    assert held("x", -0.4, 0.5)
    assert not held("x", -0.6, 0.5)


def test_every_expectation_is_about_cells_that_are_measured() -> None:
    measured = set(cells(list(TABLES)))
    wanted = list(expectations(list(TABLES)))
    assert len(set(wanted)) > 200
    assert all({expected.better, expected.worse} <= measured for expected in wanted)


def test_accuracy_is_the_share_of_rows_told_rightly() -> None:
    table = records({"sex": [0, 0, 1, 1], "paid": [0, 1, 1, 1]})
    task = Task.of(dataset(), ("sex",), "paid")
    tree = {"attribute": "sex", "branches": {"f": {"label": "yes"}, "m": {"label": "no"}}}
    assert accuracy(tree, table, task) == 0.75


@pytest.mark.slow
@pytest.mark.data
def test_no_sign_flips_on_real_tables() -> None:
    """One run on the tables that the expectations are about. Ten folds are few: t with nine degrees
    of freedom is beyond 6 with a chance of 10⁻⁴, and some 200 pairs are judged."""
    folder = data_file("acs.csv.gz").parent
    wanted = list(expectations(["nltcs", "acs"]))
    asked = {cell for expected in wanted for cell in (expected.better, expected.worse)}
    ordered = sorted(asked, key=lambda cell: cell.table)
    found = {cell: 100 * np.array([run(folder, cell, 0)]) for cell in ordered}
    failed = [text for e in wanted for ok, text in [verdict(e, found, 6.0)] if not ok]
    assert not failed
    # The judge has teeth: what is known to be inverted would not pass.
    acs = partial(Cell, "acs", 2, "information_gain", epsilon=1.0)
    flipped = Expected(acs(sensitivity="local"), acs(sensitivity="global"))
    assert not verdict(flipped, found, 6.0)[0]
