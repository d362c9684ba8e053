"""How long an edge list takes from a file to a prepared version, and how much memory.

    python -m benchmarks.upload github.edges.csv.gz --nodes 37700 --max-degree 10000

Runs in one process without the service: reading and checking, preparing, writing. The first run
of a fresh checkout compiles the kernels, so it is not counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeVar

from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Executor
from storage.ingest import UploadLimits
from storage.records.preparation import open_records, prepare_upload

Part = TypeVar("Part")
Result = TypeVar("Result")


class Threads(Executor):
    """The executor of a service with this many workers."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers)

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return list(self._pool.map(kernel, parts))


def memory(field: str) -> int:
    """A field of this process's status, in MB (Linux)."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(field + ":") + 1]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--max-degree", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    bound = options.nodes - 1 if options.max_degree is None else options.max_degree
    domain = GraphDomain(options.nodes, bound)
    executor = Threads(options.workers)
    print("run   seconds  resident MB  peak MB")
    for run in range(options.repeat + 1):
        with TemporaryDirectory() as folder:
            start = perf_counter()
            version = prepare_upload(
                options.file,
                media_type="text/csv",
                gzipped=options.file.suffix == ".gz",
                dataset=Dataset("benchmark", NeighbouringRelation.EDGE, domain),
                folder=Path(folder) / "version",
                executor=executor,
                limits=UploadLimits(),
            )
            seconds = perf_counter() - start
            open_records(version.folder, domain)
        name = "first" if run == 0 else f"{run:5}"
        print(f"{name} {seconds:8.2f}  {memory('VmRSS'):11}  {memory('VmHWM'):7}")


if __name__ == "__main__":
    main()
