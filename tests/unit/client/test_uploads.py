"""Records are streamed from disk and sent once; ``upload`` waits until they can be queried."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import httpx
import pytest

from privypurse import InvalidRecords, RecordsRefused, Unreachable
from tests.unit.client.conftest import Play, Turn, problem

GRAPH: dict[str, Any] = {"name": "g", "kind": "graph", "neighbouring": "edge", "version": 1}
PREPARING: Turn = (202, {"dataset": "g", "version": 0, "status": "preparing"}, {})
PUT, GET = "PUT /v1/datasets/g/records", "GET /v1/datasets/g"


def state(status: str, **more: Any) -> Turn:
    return 200, GRAPH | {"status": status, **more}, {}


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    file = tmp_path / "g.csv"
    file.write_bytes(b"source,target\n" + b"0,1\n" * 200_000)
    return file


def test_upload_sends_the_file_unchanged_and_waits_until_it_is_ready(
    play: Play, edges: Path
) -> None:
    purse, script = play(PREPARING, state("preparing"), state("preparing"), state("ready"))
    assert purse.upload("g", edges).status == "ready"
    assert script.lines == [PUT, GET, GET, GET]
    request = script.requests[0]
    assert request.content == edges.read_bytes()
    assert request.headers["Content-Length"] == str(edges.stat().st_size)
    assert request.headers["Content-Type"] == "text/csv"
    assert "Transfer-Encoding" not in request.headers


def test_a_compressed_file_names_its_encoding(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "g.csv.gz"
    file.write_bytes(gzip.compress(b"source,target\n0,1\n"))
    purse, script = play(PREPARING, state("ready"))
    purse.upload("g", file)
    assert script.requests[0].headers["Content-Encoding"] == "gzip"
    assert script.requests[0].headers["Content-Type"] == "text/csv"


def test_an_upload_is_not_repeated_after_a_lost_connection(play: Play, edges: Path) -> None:
    purse, script = play(httpx.WriteError)
    with pytest.raises(Unreachable):
        purse.upload("g", edges)
    assert script.lines == [PUT]
    # A failed connection and a reply 503 show that the service has taken nothing. So the client
    # sends the whole file again.
    purse, script = play(httpx.ConnectError, problem(503, "busy", "1"), PREPARING, state("ready"))
    purse.upload("g", edges)
    assert script.requests[2].content == edges.read_bytes()


def test_refusals_tell_the_owner_where(play: Play, edges: Path) -> None:
    errors = [{"loc": ["line", 7], "type": "node", "msg": "no such node"}]
    purse, _ = play(problem(422, "invalid-records", errors=errors))
    with pytest.raises(InvalidRecords, match=r"line\.7: no such node"):
        purse.upload("g", edges)
    purse, _ = play(PREPARING, state("refused", upload={"status": "refused", "errors": errors}))
    with pytest.raises(RecordsRefused, match="no such node") as caught:
        purse.upload("g", edges)
    assert caught.value.upload["errors"] == errors


def test_a_file_of_unknown_form_needs_a_media_type(play: Play, tmp_path: Path) -> None:
    purse, _ = play()
    with pytest.raises(ValueError, match="media type"):
        purse.upload("g", tmp_path / "g.xlsx")


def test_the_bar_shows_the_bytes_sent_and_the_preparation(
    play: Play, edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    purse, _ = play(PREPARING, state("preparing"), state("ready"), progress=True)
    purse.upload("g", edges)
    output = stream.getvalue()
    assert "[#######" in output
    assert "0.8 of 0.8 MB" in output
    assert "being prepared for" in output
    assert output.endswith("\r")
