"""One JSON line per request, with the id of its reply and only the listed fields."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
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


class Stream(StringIO):
    """A stream that counts its writes."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += bool(text)
        return super().write(text)


def test_what_one_turn_of_a_loop_says_is_written_in_one_piece() -> None:
    stream = Stream()
    said = logs.Lines(stream)

    async def speak() -> None:
        for turn in range(3):
            for line in range(4):
                said.info(f"{turn}.{line}")
            await asyncio.sleep(0)

    asyncio.run(speak())
    assert stream.getvalue().split() == [f"{turn}.{line}" for turn in range(3) for line in range(4)]
    assert stream.writes == 3


def test_off_a_loop_a_line_is_written_at_once() -> None:
    stream = Stream()
    said = logs.Lines(stream)
    for count in (1, 2):
        said.info("here")
        assert stream.writes == count


def test_a_loop_that_ends_takes_no_line_with_it() -> None:
    """Lines that the closed loop did not write are written with the next line."""
    stream = Stream()
    said = logs.Lines(stream)

    async def speak() -> None:
        said.info("last")
        asyncio.get_running_loop().stop()

    loop = asyncio.new_event_loop()
    with suppress(RuntimeError):  # stopped before the line was written
        loop.run_until_complete(speak())
    loop.close()
    asyncio.run(_say(said, "next"))
    assert stream.getvalue().split() == ["last", "next"]


async def _say(said: logs.Lines, line: str) -> None:
    said.info(line)
    await asyncio.sleep(0)


def test_threads_lose_no_line() -> None:
    stream = Stream()
    said = logs.Lines(stream)

    def speak(name: int) -> None:
        for line in range(500):
            said.info(f"{name}.{line}")

    async def many() -> None:
        threads = [asyncio.to_thread(speak, name) for name in range(4)]
        speaking = asyncio.gather(*threads)
        line = 0
        while not speaking.done():
            said.info(f"loop.{line}")
            line += 1
            await asyncio.sleep(0)

    asyncio.run(many())
    lines = stream.getvalue().split()
    assert sum(not line.startswith("loop") for line in lines) == 2000
    mine = [line for line in lines if line.startswith("loop")]
    assert mine == [f"loop.{n}" for n in range(len(mine))]


def test_what_was_said_last_is_written_when_the_process_ends() -> None:
    code = (
        "import asyncio, sys; from app.telemetry.logs import Lines; said = Lines(sys.stderr)\n"
        "loop = asyncio.new_event_loop()\n"
        "loop.call_soon(lambda: (said.info('last'), loop.stop()))\n"
        "loop.run_forever()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == "last\n"
