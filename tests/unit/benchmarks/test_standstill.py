"""Standstills of a processor, and the missed deadlines that they are compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.attempts import MISSED
from benchmarks.service import standstill
from benchmarks.service.load import misses
from benchmarks.service.standstill import NAP, overlap


def test_one_processor_counts_and_only_between_the_two_times() -> None:
    standstills = {0: [(1.0, 2.0), (3.0, 3.5)], 1: [(1.5, 2.5)]}
    assert overlap(standstills, 1.75, 3.25) == 0.75  # Of processor 1; processor 0 has 0.5.
    assert overlap(standstills, 0.0, 10.0) == 1.5
    assert overlap(standstills, 4.0, 5.0) == 0.0
    assert overlap({}, 0.0, 1.0) == 0.0


def test_a_nap_that_ends_late_is_a_standstill_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock of this test goes on during naps alone; the third one ends 7 ms late."""
    now, naps = 1000.0, [NAP, NAP + 0.001, NAP + 0.007, NAP]

    def sleep(_: float) -> None:
        nonlocal now
        now += naps.pop(0)

    sent: list[Any] = []

    class Connection:
        def send(self, value: Any) -> None:
            sent.append(value)

        def poll(self) -> bool:
            return not naps

    monkeypatch.setattr(standstill.time, "sleep", sleep)
    monkeypatch.setattr(standstill.time, "time", lambda: now)
    monkeypatch.setattr(standstill.time, "monotonic", lambda: now - 500)
    for name in ("sched_setaffinity", "sched_setscheduler"):
        monkeypatch.setattr(standstill.os, name, lambda *_: None)
    standstill.watch(0, Connection())  # type: ignore[arg-type]
    _, ((first, last),) = sent
    assert (first, last) == pytest.approx((1000.0 + 3 * NAP + 0.001, 1000.0 + 3 * NAP + 0.008))


def test_every_missed_deadline_of_a_log_has_its_time(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    entries = (
        {"event": "request", "timestamp": "2026-01-01T00:00:00.000000Z"},
        {"event": MISSED, "timestamp": "2026-01-01T00:00:01.500000Z"},
    )
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert list(misses(log)) == [pytest.approx(1767225601.5)]
