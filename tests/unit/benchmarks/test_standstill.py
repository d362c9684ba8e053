"""Standstills of a processor, and the missed deadlines that they are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.service.load import misses
from benchmarks.service.standstill import Standstills


def test_one_processor_counts_and_only_between_the_two_times() -> None:
    standstills = Standstills({0: [(1.0, 2.0), (3.0, 3.5)], 1: [(1.5, 2.5)]})
    assert standstills.seconds(1.75, 3.25) == 0.75  # Of processor 1; those of processor 0 are 0.5.
    assert standstills.seconds(0.0, 10.0) == 1.5
    assert standstills.seconds(4.0, 5.0) == 0.0
    assert Standstills().seconds(0.0, 1.0) == 0.0


def test_every_missed_deadline_of_a_log_has_its_time(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    log.write_text(
        '{"event": "request", "timestamp": "2026-01-01T00:00:00.000000Z"}\n'
        '{"event": "a query has missed its deadline", "timestamp": "2026-01-01T00:00:01.500000Z"}\n'
    )
    assert list(misses(log)) == [pytest.approx(1767225601.5)]
