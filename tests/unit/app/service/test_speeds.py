"""Measured speeds are stored once per machine and version, and never follow queries."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.queries.parts.cost import Speed, Speeds
from app.service import speeds as module
from app.service.made_up import SHAPES
from app.service.speeds import FEW, FILE, references, speeds_of_machine


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Speeds]:
    """The measurements so far, on a machine whose compiled kernels lie in ``tmp_path``."""
    done: list[Speeds] = []

    def measure() -> Speeds:
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
    stored = json.loads(path.read_text())
    # Another machine, other kernels, other statements of work.
    for name in ("processors", "kernels", "work"):
        path.write_text(json.dumps({**stored, "machine": {**stored["machine"], name: "other"}}))
        speeds_of_machine()
    path.write_text("{")
    speeds_of_machine()
    assert len(measured) == 5
    assert speeds_of_machine() == measured[-1]


def test_speeds_lie_in_the_data_folder_where_kernels_cannot_be_written(
    measured: list[Speeds], tmp_path: Path
) -> None:
    (tmp_path / "kernels").write_text("not a folder")
    assert speeds_of_machine(tmp_path / "data") == measured[0]
    assert speeds_of_machine(tmp_path / "data") == measured[0]
    assert len(measured) == 1
    # Without any folder the machine is measured at every start.
    assert speeds_of_machine() == measured[1]


def test_a_reference_takes_time() -> None:
    first = next(references(FEW, SHAPES[0]))
    assert 0 < first.seconds() < 60
