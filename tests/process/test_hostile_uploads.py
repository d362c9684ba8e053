"""Invalid uploads are refused over HTTP with a reason, in constant memory, and not stored."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from app.demo.service import ServiceProcess
from tests.process.conftest import QUICK
from tests.process.session import Session
from tests.support.patience import REPLY

HEADER = b"source,target\n"
CSV = {"Content-Type": "text/csv"}
GZIP = CSV | {"Content-Encoding": "gzip"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
GRAPHML = {"Content-Type": "application/graphml+xml"}
JSON = {"Content-Type": "application/json"}
MEGABYTE = 2**20
GROWTH = 128 * MEGABYTE
TWO_GB = 2 * 2**30

Content = bytes | Callable[[], bytes | Iterator[bytes]]


@dataclass(frozen=True)
class Hostile:
    """An upload, its headers, and its expected refusal, with the ``line`` if it names one."""

    content: Content
    headers: dict[str, str] = field(default_factory=lambda: CSV)
    status: int = 422
    kind: str | None = None
    line: int | None = None
    seconds: float = 120


def repeated(piece: bytes, size: int) -> Iterator[bytes]:
    """About ``size`` bytes of repeated ``piece``, in chunks of a megabyte."""
    block = piece * (MEGABYTE // len(piece))
    yield HEADER
    for _ in range(size // len(block)):
        yield block


def bomb(piece: bytes) -> bytes:
    """2 GB of ``piece`` after a header, as 2 MB of valid gzip with one member per megabyte."""
    block = piece * (MEGABYTE // len(piece))
    return gzip.compress(HEADER) + gzip.compress(block) * (TWO_GB // len(block))


RUBBISH = Random(20).randbytes(MEGABYTE)
LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE graphml [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    + b"]><graphml>&j;</graphml>"
)
DEEP = b"[" * MEGABYTE

CASES = {
    "self loop": Hostile(HEADER + b"0,1\n2,2\n", kind="self_loop", line=3),
    "duplicate edge": Hostile(HEADER + b"0,1\n1,2\n0,1\n", kind="duplicate_edge", line=4),
    "duplicate edge, turned": Hostile(HEADER + b"1,2\n2,1\n", kind="duplicate_edge", line=3),
    "unknown number": Hostile(HEADER + b"0,1\n0,12\n", kind="unknown_node", line=3),
    "negative number": Hostile(HEADER + b"-1,0\n", kind="unknown_node", line=2),
    "number above 64 bits": Hostile(HEADER + b"0,%d\n" % 2**64, kind="unknown_node", line=2),
    "name for a number": Hostile(HEADER + b"0,alice\n", kind="unknown_node", line=2),
    "degree above the bound": Hostile(HEADER + b"0,1\n0,2\n0,3\n4,0\n", kind="degree", line=5),
    "ragged line": Hostile(HEADER + b"0,1\n1,2,3\n", kind="csv", line=3),
    "blank line": Hostile(HEADER + b"0,1\n\n1,2\n", kind="csv", line=3),
    "columns of something else": Hostile(b"a,b\n0,1\n", kind="columns", line=1),
    "a column too many": Hostile(b"source,target,weight\n0,1,2\n", kind="columns", line=1),
    "a column missing": Hostile(b"source\n0\n", kind="columns", line=1),
    "no header": Hostile(b"0,1\n1,2\n", kind="columns", line=1),
    "nothing": Hostile(b"", kind="columns", line=1),
    "rubbish as CSV": Hostile(RUBBISH, kind="encoding"),
    "rubbish as gzip": Hostile(RUBBISH, GZIP, kind="gzip"),
    "rubbish as Parquet": Hostile(RUBBISH, PARQUET),
    "rubbish as GraphML": Hostile(RUBBISH, GRAPHML),
    "rubbish as JSON": Hostile(RUBBISH, JSON),
    "entities in entities": Hostile(LAUGHS, GRAPHML),
    "a million brackets": Hostile(DEEP, JSON),
    "gzip cut off": Hostile(gzip.compress(HEADER + b"0,1\n")[:-9], GZIP, kind="gzip"),
    "gzip under another name": Hostile(gzip.compress(HEADER), CSV, kind="gzip"),
    "bomb of zeros": Hostile(lambda: bomb(b"\0"), GZIP, kind="encoding", line=2),
    "bomb of one valid line": Hostile(lambda: bomb(b"0,1\n"), GZIP, kind="degree", line=5),
    "bomb of blank lines": Hostile(lambda: bomb(b"\n"), GZIP, kind="csv", line=2),
    "line of 2 GB, compressed": Hostile(lambda: bomb(b"1"), GZIP, kind="line_length", line=2),
    "line of 2 GB": Hostile(lambda: repeated(b"1", TWO_GB), status=413, seconds=120),
    "no media type": Hostile(HEADER, {}, status=415),
    "another media type": Hostile(HEADER, {"Content-Type": "text/plain"}, status=415),
    "another encoding": Hostile(HEADER, CSV | {"Content-Encoding": "br"}, status=415),
    "another character set": Hostile(
        HEADER, {"Content-Type": "text/csv; charset=utf-16"}, status=415
    ),
}


class Watch:
    """Polls ``/healthz`` continuously; every reply must be 200 within seconds."""

    def __init__(self, url: str) -> None:
        self._url, self._over = url + "/healthz", threading.Event()
        self.requests, self.slowest = 0, 0.0
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with httpx.Client(timeout=REPLY) as http:
            is_over = False
            while not is_over:
                started = time.monotonic()
                try:
                    if (status := http.get(self._url).status_code) != 200:
                        self.wrong.append(str(status))
                except httpx.HTTPError as error:
                    self.wrong.append(type(error).__name__)
                self.requests += 1
                self.slowest = max(self.slowest, time.monotonic() - started)
                is_over = self._over.wait(0.1)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@dataclass
class Watched(Session):
    """A session, and the resident bytes of its service before the first hostile upload."""

    resident: int = 0


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A session after one upload and one query, watched until the last test ends."""
    data = tmp_path_factory.mktemp("hostile") / "data"
    with ServiceProcess(data, **QUICK) as service:
        opened = Watched.open(service)
        assert isinstance(opened, Watched)
        assert opened.query("first").status_code == 201
        register(opened, "target")
        opened.ok("PUT", "/v1/datasets/target/budgets/ada", opened.owner, json=ALLOWANCE)
        opened.resident = memory(opened, "VmRSS")
        with Watch(service.url) as watch:
            yield opened
        assert watch.wrong == []
        assert watch.requests > 0
        assert watch.slowest < 60


ALLOWANCE = {"epsilon": "1", "delta": "0"}


def register(session: Session, name: str) -> None:
    graph: dict[str, Any] = {
        "name": name,
        "kind": "graph",
        "neighbouring": "edge",
        "nodes": {"count": 12},
        "max_degree": 3,
        "cap": {"epsilon": "5", "delta": "0"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=graph)


def put(session: Session, content: Content, headers: dict[str, str]) -> httpx.Response:
    body = content if isinstance(content, bytes) else content()
    path = "/v1/datasets/target/records"
    return session.send("PUT", path, session.owner, content=body, headers=headers)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_flat_memory_and_leaves_nothing(session: Watched, name: str) -> None:
    case = CASES[name]
    started = time.monotonic()
    reply = put(session, case.content, case.headers)
    seconds = time.monotonic() - started

    assert reply.status_code == case.status, reply.text
    assert reply.headers["Content-Type"].startswith("application/problem+json")
    if case.status == 422:
        error = reply.json()["errors"][0]
        assert error["msg"]
        if case.kind is not None:
            assert error["type"] == case.kind
        if case.line is not None:
            assert error["loc"][:2] == ["line", case.line]
    assert memory(session, "VmHWM") - session.resident < GROWTH
    assert seconds < case.seconds
    assert_nothing_is_stored(session)


def test_a_body_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    limit = 64 * 1024
    settings: dict[str, Any] = QUICK | {"PURSE_UPLOAD_LIMIT": str(limit)}
    with ServiceProcess(tmp_path / "data", **settings) as service:
        session = Session.open(service)
        register(session, "target")
        session.ok("PUT", "/v1/datasets/target/budgets/ada", session.owner, json=ALLOWANCE)
        for content in (b"0" * (limit + 1), lambda: repeated(b"0", 2 * MEGABYTE)):
            reply = put(session, content, CSV)
            assert reply.status_code == 413
            assert reply.json()["type"].endswith("/too-large")
            assert_nothing_is_stored(session)


def assert_nothing_is_stored(session: Session) -> None:
    """No file and no version exist, and the analyst sees a dataset without records."""
    data = session.service.data
    assert list((data / "incoming").iterdir()) == []
    # Only the accepted graph has a folder; the refused upload has not even a staging folder.
    versions = [path.name for path in (data / "datasets").glob("*/*")]
    assert versions == ["1"]
    seen = session.ok("GET", "/v1/datasets/target", session.analyst)
    assert (seen["status"], seen["version"]) == ("empty", 0)
    assert session.ok("GET", "/v1/datasets/target", session.owner)["status"] in ("empty", "refused")


def memory(session: Session, field: str) -> int:
    """Memory of the service's process in bytes: VmRSS is resident now, VmHWM the peak."""
    words = Path(f"/proc/{session.service.pid}/status").read_text("ascii").split()
    return int(words[words.index(field + ":") + 1]) * 1024
