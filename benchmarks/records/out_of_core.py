"""Prepares more than fits: an edge list and a wide table, in a process that may have little memory.

The limit is the system's own: beyond so many bytes of data (RLIMIT_DATA: all private writable
memory, touched or not) an allocation fails, and with it the preparation. Pages of mapped files are
not counted, as the system takes them back when it needs room; both peaks are measured.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter

import numpy as np

from benchmarks.bench import Bar, Bench, Setting
from benchmarks.data.graphs import random_edges
from benchmarks.result import Result
from benchmarks.rounds import memory, number

ATTRIBUTES = 14
PIECE = 1_000_000
WORKERS = 2
#: Edges, nodes or rows, and bytes of data, by kind.
SIZES = {"graph": (30_000_000, 3_000_000, 2 * 10**9), "table": (0, 10_000_000, 2 * 10**9)}
QUICK = {"graph": (300_000, 30_000, 10**9), "table": (0, 100_000, 10**9)}


class Peaks:
    """The most anonymous and the most mapped memory of this process, looked at often."""

    def __init__(self) -> None:
        self.anonymous = self.mapped = 0.0
        self._over = Event()
        self._watching = Thread(target=self._watch, daemon=True)
        self._watching.start()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.anonymous = max(self.anonymous, memory("RssAnon"))
            self.mapped = max(self.mapped, memory("RssFile"))

    def stop(self) -> None:
        self._over.set()
        self._watching.join()


def write_graph(path: Path, edges: int, nodes: int) -> None:
    """A CSV of edges; degrees fall from the first nodes to the last."""
    import pyarrow as pa
    from pyarrow.csv import write_csv

    sources, targets = random_edges(edges, nodes, 1.2)
    write_csv(pa.table({"source": sources, "target": targets}), path)


def write_table(path: Path, rows: int) -> None:
    """A CSV of 14 attributes, every second a number."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter

    random = np.random.default_rng(rows)
    names = [f"a{number}" for number in range(ATTRIBUTES)]
    types = [pa.float64() if number % 2 else pa.string() for number in range(ATTRIBUTES)]
    with CSVWriter(path, pa.schema(list(zip(names, types, strict=True)))) as out:
        for start in range(0, rows, PIECE):
            count = min(PIECE, rows - start)
            columns = [
                pa.array(np.round(random.random(count) * 100, 2))
                if number % 2
                else pa.array(random.integers(0, 9, count)).cast(pa.string())
                for number in range(ATTRIBUTES)
            ]
            out.write_table(pa.table(columns, names=names))


def prepare(kind: str, path: Path, size: int, limit: int) -> dict[str, float]:
    """In a process of its own: prepare the file within the limit; what it took."""
    from app.engine.execution import ThreadExecutor
    from mechanisms.kernels.memory import preparation_memory
    from mechanisms.model.domains import (
        CategoricalAttribute,
        Dataset,
        GraphDomain,
        NeighbouringRelation,
        NumericAttribute,
        TableDomain,
    )
    from storage.ingest import UploadLimits
    from storage.records.preparation import open_records, prepare_upload

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    if kind == "graph":
        relation, domain = NeighbouringRelation.EDGE, GraphDomain(size, min(size - 1, 500_000))
    else:
        relation = NeighbouringRelation.ADD_REMOVE
        edges = tuple(float(edge) for edge in range(0, 101, 10))
        digits = tuple(str(digit) for digit in range(9))
        domain = TableDomain(
            tuple(
                NumericAttribute(f"a{number}", 0.0, 100.0, edges)
                if number % 2
                else CategoricalAttribute(f"a{number}", digits)
                for number in range(ATTRIBUTES)
            ),
            max_rows=size,
        )
    itself = memory("RssAnon")
    peaks, start = Peaks(), perf_counter()
    folder = path.with_name("version")
    prepare_upload(
        path,
        media_type="text/csv",
        gzipped=False,
        dataset=Dataset("benchmark", relation, domain),
        folder=folder,
        executor=ThreadExecutor(WORKERS),
        limits=UploadLimits(memory_bytes=limit, preparation_work=1 << 62),
    )
    seconds = perf_counter() - start
    peaks.stop()
    open_records(folder, domain)
    took = {"seconds": seconds, "the process itself, MB": itself}
    took |= {"anonymous memory, MB": peaks.anonymous, "mapped files, MB": peaks.mapped}
    took["written, MB"] = sum(file.stat().st_size for file in folder.iterdir()) >> 20
    if kind == "graph":
        edges = len(np.load(folder / "1.npy", mmap_mode="r")) // 2
        took["calculated, MB"] = preparation_memory(size, edges, WORKERS, WORKERS) >> 20
    return took


def run(setting: Setting) -> Result:
    """Files go where temporary ones do: TMPDIR should be on a disk, not in memory."""
    result = Result()
    for kind, (edges, size, limit) in (QUICK if setting.quick else SIZES).items():
        with TemporaryDirectory() as folder:
            path = Path(folder) / "records.csv"
            if kind == "graph":
                write_graph(path, edges, size)
            else:
                write_table(path, size)
            megabytes = path.stat().st_size >> 20
            command = [sys.executable, "-m", "benchmarks.records.out_of_core", kind, str(path)]
            # The reader's own allocator takes a gigabyte of addresses that it does not use.
            plain = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
            ended = subprocess.run([*command, str(size), str(limit)], check=True, env=plain,
                                   stdout=subprocess.PIPE)  # fmt: skip
        took = json.loads(ended.stdout)
        result.table(f"{kind} of {size:,}, {megabytes} MB of CSV, {limit / 1e6:.0f} MB at most",
                     list(took), [[number(value) for value in took.values()]])  # fmt: skip
        result.measure(f"{kind}: anonymous memory", took["anonymous memory, MB"], "MB")
    return result


BENCHES = (
    Bench(
        "out_of_core",
        "Are large files prepared where the system grants no more than the limit?",
        run,
        300.0,
        (),
        (Bar("*: anonymous memory", most=2000),),
    ),
)


def main() -> None:
    kind, path, size, limit = sys.argv[1:]
    print(json.dumps(prepare(kind, Path(path), int(size), int(limit))))


if __name__ == "__main__":
    main()
