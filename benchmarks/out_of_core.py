"""Prepares more than fits: an edge list and a wide table, in a process that may have little memory.

The limit is the system's own: beyond ``--memory-limit`` bytes of data (RLIMIT_DATA: all private
writable memory, touched or not) an allocation fails, and with it the preparation. Pages of mapped
files are not counted, as the system takes them back when it needs room; both peaks are printed.

    python -m benchmarks.out_of_core graph --edges 30000000 --nodes 3000000
    python -m benchmarks.out_of_core table --rows 10000000
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter

import numpy as np

ATTRIBUTES = 14
PIECE = 1_000_000


def field(name: str) -> int:
    """A field of this process's status, in MB (Linux)."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(name + ":") + 1]) // 1024


class Peaks:
    """The most anonymous and the most mapped memory of this process, looked at often."""

    def __init__(self) -> None:
        self.anonymous = self.mapped = 0
        self._over = Event()
        self._watching = Thread(target=self._watch, daemon=True)
        self._watching.start()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.anonymous = max(self.anonymous, field("RssAnon"))
            self.mapped = max(self.mapped, field("RssFile"))

    def stop(self) -> None:
        self._over.set()
        self._watching.join()


def write_graph(path: Path, edges: int, nodes: int) -> None:
    """A CSV of distinct edges in random order; degrees fall from the first nodes to the last."""
    import pyarrow as pa
    from pyarrow.csv import write_csv

    random = np.random.default_rng(edges)
    ends = (nodes * random.random((edges + edges // 20, 2)) ** 1.2).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    keys = random.permutation(keys)[:edges]
    sources, targets = np.divmod(keys, nodes)
    write_csv(pa.table({"source": sources, "target": targets}), path)
    print(f"{len(keys)} edges, {path.stat().st_size >> 20} MB of CSV", flush=True)


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
    print(f"{rows} × {ATTRIBUTES} cells, {path.stat().st_size >> 20} MB of CSV", flush=True)


def prepare(kind: str, path: Path, size: int, limit: int, workers: int) -> None:
    """In a process of its own: prepare the file within the limit and print what it took."""
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
    print(f"the process itself takes {field('RssAnon')} MB of anonymous memory", flush=True)
    peaks, start = Peaks(), perf_counter()
    version = prepare_upload(
        path,
        media_type="text/csv",
        gzipped=False,
        dataset=Dataset("benchmark", relation, domain),
        folder=path.with_name("version"),
        executor=ThreadExecutor(workers),
        limits=UploadLimits(memory_bytes=limit, preparation_work=1 << 62),
    )
    seconds = perf_counter() - start
    peaks.stop()
    open_records(version.folder, domain)
    if kind == "graph":
        indices = np.load(version.folder / "1.npy", mmap_mode="r")
        most = preparation_memory(size, len(indices) // 2, workers, workers)
        print(f"by calculation {most >> 20} MB beside those of the process", flush=True)
    written = sum(file.stat().st_size for file in version.folder.iterdir()) >> 20
    print(
        f"prepared in {seconds:.0f} s within {limit >> 20} MB: {written} MB of arrays, at most "
        f"{peaks.anonymous} MB anonymous and {peaks.mapped} MB of mapped files in memory, "
        f"VmHWM {field('VmHWM')} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("graph", "table"))
    parser.add_argument("--edges", type=int, default=30_000_000)
    parser.add_argument("--nodes", type=int, default=3_000_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-limit", type=int, default=2 * 10**9, help="bytes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="on a disk, not in memory")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = options.nodes if options.kind == "graph" else options.rows
    if options.prepare:
        prepare(options.kind, options.prepare, size, options.memory_limit, options.workers)
        return
    with TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "records.csv"
        if options.kind == "graph":
            write_graph(path, options.edges, options.nodes)
        else:
            write_table(path, options.rows)
        command = [sys.executable, "-m", "benchmarks.out_of_core", *sys.argv[1:]]
        # The reader's own allocator takes a gigabyte of addresses that it does not use.
        plain = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
        ended = subprocess.run([*command, "--prepare", str(path)], check=False, env=plain)
        raise SystemExit(ended.returncode)


if __name__ == "__main__":
    main()
