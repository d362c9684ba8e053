"""The reproduction of the papers: it resumes, its report is made of its files, its tests are right.

What the experiments find is not tested here: they say it themselves, in the report.
"""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import files
from benchmarks.bench import Setting
from benchmarks.numbers import formatted
from benchmarks.reproduction import __main__ as command
from benchmarks.reproduction.__main__ import EXPERIMENTS
from benchmarks.reproduction.comparison import compare
from benchmarks.reproduction.experiments.tree_search import hypervolume
from benchmarks.reproduction.inventory import INVENTORY
from benchmarks.reproduction.report import build, rendered
from benchmarks.reproduction.runner import Run, work
from benchmarks.result import Difference, Result, Verdict, marks
from tests.architecture.imports import ROOT
from tests.support.data import data_file
from tests.support.patience import until
from tests.unit.benchmarks import small_experiments

START = f"""
import sys
from pathlib import Path
from benchmarks.bench import Setting
from benchmarks.reproduction.runner import Run
from {small_experiments.__name__} import EXPERIMENTS
Run(EXPERIMENTS, Path(sys.argv[1]), Setting(Path(sys.argv[1])), 1).all()
"""


def done_in_process(folder: Path, seed: int) -> None:
    for one in small_experiments.EXPERIMENTS:
        if "while" not in one.question:
            work(one, Setting(folder, seed), folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of two small experiments, and a summary."""
    done_in_process(tmp_path, 1)
    two = [e for e in small_experiments.EXPERIMENTS if e.name in {"first", "later"}]
    assert Run(two, tmp_path, Setting(tmp_path), 1, lambda _: None).all()
    return tmp_path


def test_a_start_after_a_kill_goes_on_where_it_was(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", START, str(tmp_path)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    process, first = start(), tmp_path / "first.json"
    try:
        until(first.exists)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert not (tmp_path / "third.json").exists()
    before = first.stat().st_mtime_ns
    # A result file that was cut short counts as missing, so its experiment runs again.
    (tmp_path / "second.json").write_text('{"experiment": "second", "se')
    again = start()
    said, _ = again.communicate(timeout=600)
    assert again.returncode == 0
    assert said.startswith("3 of 4 experiments to run, 1 are there")
    assert "elapsed" in said
    assert first.stat().st_mtime_ns == before
    assert {r["experiment"] for r in files.results(tmp_path)} == {
        e.name for e in small_experiments.EXPERIMENTS
    }


def test_other_questions_are_not_taken_for_the_same(folder: Path) -> None:
    (one, *_) = small_experiments.EXPERIMENTS

    def run(seed: int, quick: bool) -> Run:
        return Run([one], folder, Setting(folder, seed, quick), 1)

    assert run(1, False).stored(one)
    assert not run(2, False).stored(one)
    assert not run(1, True).stored(one)


def test_a_failure_is_said_and_leaves_no_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no"):
        work(small_experiments.BROKEN, Setting(tmp_path), tmp_path)
    assert list(files.results(tmp_path)) == []


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [
        (0.5, 0.1, Verdict.HOLDS),
        (0.3, 0.1, Verdict.OTHERWISE),
        (0.3, 0.31, Verdict.OPEN),
        (0.05, 0.04, Verdict.FAILS),
        (0.05, 0.06, Verdict.OPEN),
        (-0.2, 0.1, Verdict.FAILS),
        (-0.2, 0.4, Verdict.OPEN),
    ],
)
def test_a_difference_below_the_stated_one_is_none(
    value: float, half: float, verdict: Verdict
) -> None:
    assert Difference(value, half, equal=0.1, enough=0.4).verdict is verdict


@given(value=st.floats(-5, 5), half=st.floats(0, 0.049))
def test_a_narrow_interval_always_decides(value: float, half: float) -> None:
    assert Difference(value, half, equal=0.1).verdict is not Verdict.OPEN


def test_a_full_run_repeats_until_a_claim_is_decided(tmp_path: Path) -> None:
    one = [small_experiments.COMPARED]

    def claim() -> dict[str, Any]:
        ((result,),) = [[*files.results(tmp_path)]]
        return dict(result["claims"][0])

    said: list[str] = []
    assert Run(one, tmp_path, Setting(tmp_path), 1, said.append).all()
    assert (claim()["verdict"], claim()["seen"]) == (Verdict.OPEN, "6 runs")
    assert said[-1] == "undecided: compared: ours is larger: 6 runs"
    full = Run(one, tmp_path, Setting(tmp_path, full=True), 1, said.append)
    assert full.stored(*one) is None
    assert full.all()
    assert not said[-1].startswith("undecided")
    assert claim()["verdict"] == Verdict.FAILS
    assert int(claim()["seen"].split()[0]) > 50
    # A result whose claims are all decided is not computed again, neither by a full run nor by a
    # short one.
    assert full.stored(*one)
    assert Run(one, tmp_path, Setting(tmp_path), 1).stored(*one)


def test_a_verdict_against_its_numbers_is_not_written(tmp_path: Path) -> None:
    work(small_experiments.COMPARED, Setting(tmp_path, full=True), tmp_path)
    assert Run([], tmp_path, Setting(tmp_path), 1, lambda _: None).all()
    build(tmp_path)
    path = tmp_path / "compared.json"
    for wrong in (Verdict.HOLDS, Verdict.OTHERWISE, Verdict.OPEN):
        seeded = files.read(path)
        assert seeded is not None
        seeded["claims"][0]["verdict"] = wrong
        files.write(path, seeded)
        with pytest.raises(ValueError, match="contradict their numbers: compared: ours is larger"):
            build(tmp_path)
        seeded["claims"][0]["verdict"] = Verdict.FAILS
        files.write(path, seeded)
    seeded["claims"][0]["difference"]["value"] = 1.0
    files.write(path, seeded)
    with pytest.raises(ValueError, match="contradict"):
        build(tmp_path)


def test_the_hypervolume_is_the_area_below_the_points() -> None:
    points = np.array([[0.5, 0.8], [0.9, 0.2], [0.4, 0.7], [0.9, 0.2]])
    assert hypervolume(points) == pytest.approx(0.9 * 0.2 + 0.5 * 0.6)
    assert hypervolume(np.array([[1.0, 0.0], [0.0, 1.0]])) == 0


# ---- the report --------------------------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def read_numbers(folder: Path) -> set[str]:
    """Every number of the result files and the summary, as the report writes it, and every one
    that stands in a text of them."""
    result: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(name)
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        elif isinstance(value, str):
            result.update(NUMBER.findall(value))
        elif isinstance(value, int | float):
            result.update(NUMBER.findall(formatted(value)))

    for path in folder.glob("*.json"):
        walk(json.loads(path.read_text()))
    return result


def strangers(page: str, folder: Path) -> set[str]:
    """Numbers that a reader sees and no file holds."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    seen = html.unescape(re.sub(r"<[^>]*>", " ", page))
    return set(NUMBER.findall(seen)) - read_numbers(folder)


def test_every_number_of_the_report_stands_in_a_file(folder: Path) -> None:
    page = build(folder).read_text()
    assert len(NUMBER.findall(page)) > 50
    assert strangers(page, folder) == set()
    # The check would notice a number that is in no result file, and one that is no longer in its
    # file.
    assert strangers(page.replace("</h1>", " 31.7</h1>", 1), folder) == {"31.7"}
    path = folder / "first.json"
    path.write_text(path.read_text().replace("0.4375", "0.4376"))
    assert "0.438" not in strangers(page, folder)
    path.write_text(path.read_text().replace("0.4376", "0.9"))
    assert "0.438" in strangers(page, folder)


def test_the_report_needs_nothing_from_elsewhere(folder: Path) -> None:
    page = build(folder).read_text()
    assert re.findall(r"https?:|//[a-z]|@import|url\(|<script|<link|\ssrc=", page) == []
    assert {*re.findall(r'href="([^"]*)"', page)} == {"#first"}


def test_names_and_texts_are_escaped(folder: Path) -> None:
    summary = files.read(folder / files.SUMMARY)
    (one, *_) = files.results(folder)
    assert summary is not None
    one["claims"][0]["says"] = summary["failed"]["<b>x"] = "<script>1</script>"
    one["plots"][0]["lines"] = {"<i>": [[1.0, 0.0], [2.0, 0.0]]}
    summary["inventory"][0]["paper"] = one["paper"]
    page = rendered(summary, [one])
    assert "<script>" not in page
    assert "<b>x" not in page
    assert "<i>" not in page


def test_a_claim_that_does_not_simply_hold_says_why() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Result().claim("says", "seen", Verdict.FAILS)


@pytest.mark.parametrize(
    ("values", "logarithmic", "result"),
    [
        ([0.0, 1.0], False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([71.2, 83.9], False, [70.0, 75.0, 80.0, 85.0]),
        ([3e-3, 40.0], True, [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]),
        ([], False, [0.0, 1.0]),
    ],
)
def test_marks_are_round_and_enclose(
    values: list[float], logarithmic: bool, result: list[float]
) -> None:
    assert marks(values, logarithmic) == result


# ---- comparison of runs with two seeds ---------------------------------------------------------


def test_runs_with_two_seeds_are_compared(folder: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other")
    done_in_process(other, 2)
    result = compare(folder, other)
    assert result.good
    assert result.exact == 2
    assert result.pairs == 3
    assert compare(folder, folder).furthest[0] == 0
    changed = files.read(other / "first.json")
    assert changed is not None
    changed["plots"][0]["lines"]["line"][0][0] += 1
    files.write(other / "first.json", changed)
    assert not compare(folder, other).good
    changed["plots"][0]["lines"]["line"][0][0] -= 1
    changed["plots"][1]["lines"]["line"][0][0] += 1e-6
    files.write(other / "first.json", changed)
    assert compare(folder, other).differing
    changed["claims"][0]["verdict"] = Verdict.FAILS
    files.write(other / "first.json", changed)
    assert compare(folder, other).turned


def test_one_seed_gives_one_result(tmp_path_factory: Any) -> None:
    result = []
    for _ in range(2):
        place = tmp_path_factory.mktemp("same")
        done_in_process(place, 5)
        result.append((files.read(place / "first.json") or {})["stored"])
    assert result[0] == result[1]


# ---- the inventory of experiments --------------------------------------------------------------


def test_the_inventory_and_the_experiments_know_each_other() -> None:
    names = [e.name for e in EXPERIMENTS]
    assert len(set(names)) == len(names)
    listed = {name for one in INVENTORY for name in one.experiments}
    assert listed == set(names)
    assert all(one.experiments or one.reason for one in INVENTORY)
    assert {e.paper for e in EXPERIMENTS} == {one.paper for one in INVENTORY}
    assert all(set(e.needs) <= set(names) for e in EXPERIMENTS)


def test_only_takes_what_is_needed_along() -> None:
    (chosen,) = [command.selected(["rank_comparisons.trees"])]
    assert {e.name for e in chosen} == {
        "rank_comparisons.trees", *(f"decision_trees.{t}" for t in ("adult", "nltcs", "acs"))
    }  # fmt: skip


def test_the_expected_time_is_less_than_a_quarter_of_an_hour_on_two_cores() -> None:
    assert sum(e.seconds for e in EXPERIMENTS) < 2 * 15 * 60


@pytest.mark.slow
@pytest.mark.data
def test_every_experiment_runs_and_is_reported(tmp_path: Path) -> None:
    data = data_file("manifest.json").parent
    assert command.main(["--data", str(data), "--out", str(tmp_path), "--quick"]) == 0
    assert {r["experiment"] for r in files.results(tmp_path)} == {e.name for e in EXPERIMENTS}
    assert strangers((tmp_path / files.REPORT).read_text(), tmp_path) == set()
