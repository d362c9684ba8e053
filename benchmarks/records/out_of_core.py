"""Prepares more than fits: an edge list and a wide table, in a process that may have little memory.

The limit is the system's own: beyond so many bytes of data (RLIMIT_DATA: all private writable
memory, touched or not) an allocation fails, and with it the preparation. Pages of mapped files are
not counted, as the system takes them back when it needs room; both peaks are measured.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyarrow.csv import CSVWriter, write_csv

from app.engine.execution import ThreadExecutor
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.data.graphs import graph_dataset, random_edges
from benchmarks.result import Result
from benchmarks.rounds import in_own_process, memory
from mechanisms.kernels.graphs.memory import preparation_memory
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from storage.ingest import UploadLimits
from storage.records.preparation import open_records, prepare_upload

ANONYMOUS = "anonymous memory, MB"
ATTRIBUTES = 14
PIECE = 1_000_000
WORKERS = 2
#: By kind of data: the edges, the nodes or rows, and the limit on memory in bytes.
SIZES = {"graph": (30_000_000, 3_000_000, 2 * 10**9), "table": (0, 10_000_000, 2 * 10**9)}
QUICK = {"graph": (300_000, 30_000, 10**9), "table": (0, 100_000, 10**9)}


@contextmanager
def peaks() -> Iterator[dict[str, float]]:
    """The most anonymous and the most mapped memory of this process, looked at often."""
    most, over = {"RssAnon": 0.0, "RssFile": 0.0}, Event()

    def watch() -> None:
        while not over.wait(0.02):
            most.update({field: max(value, memory(field)) for field, value in most.items()})

    watching = Thread(target=watch, daemon=True)
    watching.start()
    yield most
    over.set()
    watching.join()


def write_graph(path: Path, edges: int, nodes: int) -> None:
    """A CSV of edges; degrees fall from the first nodes to the last."""
    sources, targets = random_edges(edges, nodes, 1.2)
    write_csv(pa.table({"source": sources, "target": targets}), path)


def write_table(path: Path, rows: int) -> None:
    """A CSV of 14 attributes, every second a number."""
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


def dataset_of(kind: str, size: int) -> Dataset:
    """The public description of a graph of so many nodes, or of a table of so many rows."""
    if kind == "graph":
        return graph_dataset("benchmark", size, min(size - 1, 500_000))
    edges = tuple(float(edge) for edge in range(0, 101, 10))
    digits = tuple(str(digit) for digit in range(9))
    attributes = tuple(
        NumericAttribute(f"a{number}", 0.0, 100.0, edges)
        if number % 2
        else CategoricalAttribute(f"a{number}", digits)
        for number in range(ATTRIBUTES)
    )
    domain = TableDomain(attributes, max_rows=size)
    return Dataset("benchmark", NeighbouringRelation.ADD_REMOVE, domain)


def prepare(kind: str, path: Path, size: int, limit: int) -> dict[str, float]:
    """In a process of its own: prepare the file within the limit; what it took."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    dataset, itself, start = dataset_of(kind, size), memory("RssAnon"), perf_counter()
    folder = path.with_name("version")
    with peaks() as most:
        prepare_upload(
            path,
            media_type="text/csv",
            gzipped=False,
            dataset=dataset,
            folder=folder,
            executor=ThreadExecutor(WORKERS),
            limits=UploadLimits(memory_bytes=limit, preparation_work=1 << 62),
        )
        seconds = perf_counter() - start
    open_records(folder, dataset.domain)
    taken = {
        "seconds": seconds,
        "the process itself, MB": itself,
        ANONYMOUS: most["RssAnon"],
        "mapped files, MB": most["RssFile"],
        "written, MB": sum(file.stat().st_size for file in folder.iterdir()) >> 20,
    }
    if kind == "graph":
        edges = len(np.load(folder / "1.npy", mmap_mode="r")) // 2
        taken["calculated, MB"] = preparation_memory(size, edges, WORKERS, WORKERS) >> 20
    return taken


def run(result: Result, setting: Setting) -> None:
    """Files go where temporary ones do: TMPDIR should be on a disk, not in memory."""
    for kind, (edges, size, limit) in (QUICK if setting.quick else SIZES).items():
        with TemporaryDirectory() as folder:
            path = Path(folder) / "records.csv"
            if kind == "graph":
                write_graph(path, edges, size)
            else:
                write_table(path, size)
            megabytes = path.stat().st_size >> 20
            # Arrow's own allocator reserves a gigabyte of addresses that it does not use. They
            # would count against the limit.
            os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
            taken = in_own_process(prepare, kind, path, size, limit)
        result.table(f"{kind} of {size:,}, {megabytes} MB of CSV, {limit / 1e6:.0f} MB at most",
                     list(taken), [list(taken.values())])  # fmt: skip
        result.measure(f"{kind}: anonymous memory", taken[ANONYMOUS], "MB")


BENCHES = (
    Bench("out_of_core", "Are large files prepared where the system grants no more than the limit?",
          run, 300.0, bars=(Bar("*: anonymous memory", most=2000),)),
)  # fmt: skip
