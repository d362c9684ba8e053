"""Measured speeds are stored once per machine and version, and never follow queries."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from app.queries.parts.cost import Speed, Speeds
from app.service import speeds as module
from app.service.fit import Timing
from app.service.made_up import SHAPES
from app.service.speeds import (
    FEW,
    FILE,
    GROWTH,
    MOST,
    OF_TREES,
    RUNS,
    MachineSpeeds,
    Reference,
    forget,
    references,
)
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.noise.laplace_sums import half_width
from mechanisms.noise.rate import Rate


def speeds_of_machine(data: Path | None = None) -> Speeds | None:
    speeds = MachineSpeeds(data)
    deque(speeds.steps(), maxlen=0)
    return speeds.current


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Speeds]:
    """The measurements so far, on a machine whose compiled kernels lie in ``tmp_path``."""
    done: list[Speeds] = []

    def measure() -> Generator[None, None, Speeds]:
        yield
        done.append(Speeds(0.25, {"forest": Speed(float(len(done)), 0.5)}))
        return done[-1]

    config = SimpleNamespace(CACHE_DIR=str(tmp_path / "kernels"))
    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(module.numba, "config", config)
    return done


def test_a_machine_is_measured_once(measured: list[Speeds], tmp_path: Path) -> None:
    first = speeds_of_machine()
    assert speeds_of_machine() == first == measured[0]
    assert len(measured) == 1
    path = tmp_path / "kernels" / FILE
    (stored,) = json.loads(path.read_text())
    # Stored speeds do not count for another machine, other kernels, other statements of work or
    # another way to allocate memory.
    for name in ("processors", "kernels", "work", "memory"):
        other = {**stored, "machine": {**stored["machine"], name: "other"}}
        path.write_text(json.dumps([other]))
        latest = speeds_of_machine()
        assert json.loads(path.read_text())[1] == other
        assert speeds_of_machine() == latest
    path.write_text("{")
    speeds_of_machine()
    assert len(measured) == 6
    assert speeds_of_machine() == measured[-1]


def test_speeds_lie_in_the_data_folder_where_kernels_cannot_be_written(
    measured: list[Speeds], tmp_path: Path
) -> None:
    (tmp_path / "kernels").write_text("not a folder")
    assert speeds_of_machine(tmp_path / "data") == measured[0]
    assert speeds_of_machine(tmp_path / "data") == measured[0]
    assert len(measured) == 1
    # Without any folder that can store its speeds, the machine is measured at every start.
    assert speeds_of_machine() == measured[1]


def test_a_reference_takes_time() -> None:
    first = references(FEW, SHAPES[0])[0]
    assert 0 < first.seconds() < 60


def test_a_query_at_a_new_loss_finds_no_law_of_noise_that_was_worked_out_before() -> None:
    half_width(Rate(1, 7), 5, Fraction(1, 20))
    assert half_width.cache_info().currsize
    forget()
    assert not half_width.cache_info().currsize


def test_all_tables_are_timed_on_most_records_and_graphs_are_not() -> None:
    few, most = (references(size, SHAPES[0]) for size in (FEW, MOST))
    names = {place: one.dataset.neighbouring for place, one in few.items()}
    assert {names[place] for place in most} == {
        NeighbouringRelation.ADD_REMOVE,
        NeighbouringRelation.REPLACE,
    }
    grow = {
        name
        for place, one in most.items()
        for name, amount in one.work.items()
        if amount.units > few[place].work[name].units
    }
    assert {"rows of tables", "condition", "sum of numbers", "sorted rows"} <= grow
    assert {"rows of open groups", "values of open groups"} <= grow
    # Every query that is timed on most records is timed on few too. Some are timed on few alone.
    assert all(one.query == few[place].query for place, one in most.items())
    assert few.keys() - most.keys()


@pytest.mark.long
def test_measuring_tells_how_far_it_is_and_stores_no_speeds_that_do_not_cover_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module.numba, "config", SimpleNamespace(CACHE_DIR=str(tmp_path)))
    monkeypatch.setattr(Reference, "seconds", lambda _: 0.001)
    runs: dict[bool, set[int]] = {False: set(), True: set()}

    def nothing(timings: Sequence[Timing]) -> Speeds:
        for one in timings:
            runs[GROWTH in one.work].add(len(one.runs))
        names = {name for one in timings for name in one.work}
        return Speeds(0.0, dict.fromkeys(names, Speed(0.0, 0.0)))

    monkeypatch.setattr(module, "fitted", nothing)
    with capture_logs() as lines, pytest.raises(RuntimeError, match="do not cover"):
        speeds_of_machine()
    rounds = [line["event"].partition("round ")[2].partition(",")[0] for line in lines]
    assert rounds == [f"{number} of {RUNS}" for number in range(1, RUNS + 1)]
    assert runs == {False: {RUNS}, True: {RUNS * OF_TREES}}
    assert not (tmp_path / FILE).exists()
