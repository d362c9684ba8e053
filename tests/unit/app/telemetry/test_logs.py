"""One JSON line per request, with the id of its reply and only the listed fields."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
import structlog
from fastapi.testclient import TestClient

from app.config.settings import Settings
from app.main import create_app
from app.telemetry import logs
from storage.database.database import Database


def lines(output: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines logged since the last call."""
    return [json.loads(line) for line in output.readouterr().err.splitlines()]


def test_a_request_is_one_line_under_its_id(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    with TestClient(create_app(settings)) as client:
        reply = client.get("/v1/datasets/some-name?cursor=c")
        other = client.get("/healthz", headers={"X-Request-Id": reply.headers["X-Request-Id"]})
    [line, _] = [line for line in lines(capsys) if line["event"] == "request"]
    assert re.fullmatch("[0-9a-f]{16}", line["request_id"])
    assert line["request_id"] == reply.headers["X-Request-Id"] == reply.json()["request_id"]
    assert (line["method"], line["status"], line["level"]) == ("GET", 401, "info")
    assert line["route"] == "/v1/datasets/{name}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}(\.\d{6})?Z", line["timestamp"])
    assert other.headers["X-Request-Id"] != line["request_id"], "a caller chooses no ids"


def test_a_failure_is_its_class_under_the_id_of_the_reply(
    capsys: pytest.CaptureFixture[str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Database) -> bool:
        raise LookupError("canary of a record")

    monkeypatch.setattr(Database, "ready", fails)
    with TestClient(create_app(settings)) as client:
        reply = client.get("/readyz")
    assert reply.status_code == 500
    entries = lines(capsys)
    [failed] = [line for line in entries if line["event"] == "failed"]
    assert failed["error"] == "LookupError"
    assert failed["request_id"] == reply.headers["X-Request-Id"]
    assert "canary" not in json.dumps(entries) + reply.text


def test_a_field_that_is_not_on_the_list_does_not_get_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure()
    structlog.get_logger("privypurse.test").info("said", status=200, rows=41, dataset="canary")
    [line] = lines(capsys)
    assert set(line) == {"event", "level", "timestamp", "status"}


@pytest.mark.parametrize("status", [201, None])
def test_the_line_of_a_request_is_as_any_other_line(
    capsys: pytest.CaptureFixture[str], status: int | None
) -> None:
    logs.configure()
    fields = {"request_id": "0" * 16, "method": 'P"', "route": "/v1/é", "status": status}
    logs.note_request(**fields)  # type: ignore[arg-type]
    logs.ready.info("request", **fields)
    one, other = lines(capsys)
    assert set(one) <= logs.ALLOWED
    assert one | {"timestamp": ""} == other | {"timestamp": ""}


class Stream(StringIO):
    """A stream that counts its writes."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += bool(text)
        return super().write(text)


def test_the_lines_of_one_turn_of_a_loop_are_written_at_once() -> None:
    stream = Stream()
    lines = logs.Lines(stream)

    async def write() -> None:
        for turn in range(3):
            for line in range(4):
                lines.info(f"{turn}.{line}")
            await asyncio.sleep(0)

    asyncio.run(write())
    assert stream.getvalue().split() == [f"{turn}.{line}" for turn in range(3) for line in range(4)]
    assert stream.writes == 3


def test_a_loop_that_ends_takes_no_line_with_it() -> None:
    """The lines that it could not write are written with the next one."""
    stream = Stream()
    lines = logs.Lines(stream)

    async def write(line: str) -> None:
        lines.info(line)

    async def write_and_stop() -> None:
        lines.info("last")
        asyncio.get_running_loop().stop()

    loop = asyncio.new_event_loop()
    with suppress(RuntimeError):  # The loop stops before its task ends, which is an error.
        loop.run_until_complete(write_and_stop())
    loop.close()
    asyncio.run(write("next"))
    assert stream.getvalue().split() == ["last", "next"]


def test_without_a_loop_each_line_is_written_at_once() -> None:
    stream = Stream()
    lines = logs.Lines(stream)
    for count in (1, 2):
        lines.info("here")
        assert stream.getvalue() == "here\n" * count
        assert stream.writes == count


def test_a_line_that_cannot_be_written_is_lost() -> None:
    stream = Stream()
    lines = logs.Lines(stream)
    stream.close()
    lines.info("lost")


def test_threads_lose_no_line() -> None:
    stream = Stream()
    lines = logs.Lines(stream)

    def write(name: int) -> None:
        for line in range(500):
            lines.info(f"{name}.{line}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    written = stream.getvalue().split()
    for name in range(4):
        own = [line for line in written if line.startswith(f"{name}.")]
        assert own == [f"{name}.{line}" for line in range(500)]
