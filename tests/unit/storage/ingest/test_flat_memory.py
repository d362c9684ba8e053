"""Files made to fill the memory: refused within seconds, and the memory stays flat.

They are read in a process of their own, whose peak of resident memory is measured for each file,
after all libraries are loaded. A gzip file may be many members after each other, so that two
gigabytes of text are made here without compressing two gigabytes.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Measured = Callable[..., dict[str, Any]]
ROOT = Path(__file__).resolve().parents[4]
PIECE = 2**24
PIECES = 128  # the number of pieces of 16 MB in a file of 2 GB
FLAT = 128  # the most MB by which the memory of the reader may grow
SECONDS = 30.0  # the most processor time; elapsed time would depend on other work

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are read from /proc"
)


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    command = [sys.executable, "-m", "tests.unit.storage.ingest.peak"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        sent, replies = reader.stdin, reader.stdout

        def read(
            path: Path, domain: str, media_type: str = "text/csv", *, gzipped: bool = False
        ) -> dict[str, Any]:
            sent.write(json.dumps([str(path), domain, media_type, gzipped]) + "\n")
            sent.flush()
            report: dict[str, Any] = json.loads(replies.readline())
            assert report["seconds"] < SECONDS
            return report

        yield read
        sent.close()
    assert reader.returncode == 0


def bomb(folder: Path, head: bytes, unit: bytes) -> Path:
    path = folder / "bomb"
    piece = gzip.compress(unit * (PIECE // len(unit)))
    with path.open("wb") as file:
        file.write(gzip.compress(head))
        for _ in range(PIECES):
            file.write(piece)
    assert path.stat().st_size < 2**23
    return path


@pytest.mark.parametrize(
    ("head", "unit", "ended"),
    [
        (b"source,target\n0,", b"7", ["line_length"]),
        (b"", b"\0", ["encoding"]),
        (b"source,target\n", b"\n", ["csv"]),
        (b"", b"\n", ["columns"]),
        (b"", b",", ["line_length"]),
        (b"source,target\n", b"0,1\n", ["degree"]),
        (b"source,target\n", b"0,1\n2,3\n4,5\n6,7\n", ["too_large"]),
        (b"source,target\n", b"1\n", ["csv"]),
        (b"source,target\n", b'"\n', ["csv"]),
        (b"source,target\n", b"x,y\n", ["unknown_node"]),
        (b"source,target\n", b"\xff,1\n", ["encoding"]),
    ],
    ids=lambda value: None if isinstance(value, list) else repr(value),
)
def test_gzip_bombs_for_a_graph(
    measured: Measured, tmp_path: Path, head: bytes, unit: bytes, ended: list[str]
) -> None:
    report = measured(bomb(tmp_path, head, unit), "graph", gzipped=True)
    assert report["ended"] == ended
    assert report["grown"] < FLAT


@pytest.mark.parametrize(
    ("head", "unit", "ended"),
    [(b"sex\n", b"Male\n", ["rows"]), (b"sex\n", b"M", ["line_length"])],
)
def test_gzip_bombs_for_a_table(
    measured: Measured, tmp_path: Path, head: bytes, unit: bytes, ended: list[str]
) -> None:
    report = measured(bomb(tmp_path, head, unit), "table", gzipped=True)
    assert report["ended"] == ended
    assert report["grown"] < FLAT


def test_a_long_plain_line(measured: Measured, tmp_path: Path) -> None:
    path = tmp_path / "line"
    with path.open("wb") as file:
        file.write(b"source,target\n0,")
        for _ in range(16):
            file.write(b"7" * PIECE)
    report = measured(path, "graph")
    assert report["ended"] == ["line_length"]
    assert report["grown"] < FLAT


def test_two_sparse_gigabytes(measured: Measured, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.write_bytes(b"source,target\n")
    os.truncate(path, 2**31)
    report = measured(path, "graph")
    assert report["ended"] == ["encoding"]
    assert report["grown"] < FLAT


def test_a_parquet_file_of_one_long_text(measured: Measured, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A dictionary-encoded column: a million rows refer to one text of a megabyte. A reader that
    # writes the text out for each row needs a terabyte.
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 10**6, pa.int32()), ["M" * 2**20])
    path = tmp_path / "texts"
    pq.write_table(pa.table({"sex": texts}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 2**20
    report = measured(path, "table", "application/x-parquet")
    assert report["ended"] == ["unknown_value"]
    assert report["grown"] < FLAT


def test_a_parquet_file_of_many_rows(measured: Measured, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.DictionaryArray.from_arrays(pa.array([0] * 10**7, pa.int8()), ["Male"])
    pq.write_table(pa.table({"sex": column}), tmp_path / "rows", row_group_size=10**7)
    report = measured(tmp_path / "rows", "table", "application/x-parquet")
    assert report["ended"] == ["rows"]
    assert report["grown"] < FLAT
