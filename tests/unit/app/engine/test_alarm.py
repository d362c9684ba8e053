"""A violated constraint is logged as an alarm, and the published heads record the freeze."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from app.service.heads import alarmed
from storage.assurance.heads import HeadsLog


def test_an_alarm_is_logged_and_marked(tmp_path: Path) -> None:
    heads = HeadsLog(tmp_path / "heads.log")
    with capture_logs() as logs:
        alarmed(heads, [3, 4], 1234)
        alarmed(heads, [], 5678)  # An alarm is also raised if no account could be frozen.
    assert [(line["log_level"], line["accounts"]) for line in logs] == [
        ("critical", 2),
        ("critical", 0),
    ]
    heads.refresh()
    assert heads.marks == {1234}


def test_an_alarm_that_cannot_be_marked_stops_nothing(tmp_path: Path) -> None:
    """The alarm comes between the commit of a batch and the replies to its charged queries."""
    (tmp_path / "file").write_bytes(b"")
    with capture_logs() as logs:
        alarmed(HeadsLog(tmp_path / "file" / "heads.log"), [3], 1234)
    assert [line["log_level"] for line in logs] == ["critical", "error"]
