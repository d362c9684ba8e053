"""One process against two workers of a cluster, and against two of which one is killed half way.

Prepares graphs, searches trees and draws contexts by ``max_dependency`` in all three ways; the
bytes must be the same, and the times say from which size a cluster is worth it. All of it runs on
this machine: one process has one thread for kernels, each worker has one too.

    python -m benchmarks.cluster --edges 10000000 --rows 1000000
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from time import perf_counter

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.queries.distance.body import Distance
from app.queries.parts.query import QueryContext
from app.queries.tree.evolutionary import EvolutionaryTree
from benchmarks.graphs import read_edge_list
from mechanisms.kernels.graph import compressed_rows
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Executor
from storage.files.arrays import write_arrays
from storage.ingest import CodedGraph
from storage.records.preparation import open_records, prepare
from tests.support.clusters import Processes, cluster
from tests.support.randomness import SeededRandomness

Work = Callable[[Executor, Path], str]

ATTRIBUTES, LEVELS = 14, 4
LOSS = PrivacyLoss(10**9)


def generated(edges: int) -> CodedGraph:
    """A graph of about so many edges with some nodes of large degree, a fifth as many nodes."""
    nodes = edges // 5
    random = np.random.default_rng(edges)
    ends = (nodes * random.random((edges + edges // 50, 2)) ** 1.5).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    # Not the first ones: they would all be of the same nodes.
    keys = random.permutation(keys)[:edges]
    sources, targets = (part.astype(np.int32) for part in np.divmod(keys, nodes))
    return CodedGraph(*compressed_rows(sources, targets, nodes))


def preparation(graph: CodedGraph) -> Work:
    def work(executor: Executor, folder: Path) -> str:
        prepare(graph, folder, executor, work_limit=1 << 62)
        digest = hashlib.sha256()
        for path in sorted(folder.iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    return work


def table(data: Path, rows: int) -> tuple[Dataset, Path]:
    """A stored table of independent attributes but for the class, which follows two of them."""
    random = np.random.default_rng(rows)
    names = [f"a{number}" for number in range(ATTRIBUTES)]
    codes = {name: random.integers(0, LEVELS, rows).astype(np.uint8) for name in names}
    codes["class"] = ((codes["a0"] + codes["a1"]) % 2).astype(np.uint8)
    folder = data / f"table-{rows}"
    write_arrays(folder, "table", {f"codes:{name}": column for name, column in codes.items()})
    values = tuple(str(level) for level in range(LEVELS))
    attributes = [CategoricalAttribute(name, values) for name in names]
    attributes.append(CategoricalAttribute("class", ("0", "1")))
    domain = TableDomain(tuple(attributes), "class", max_rows=rows)
    return Dataset("benchmark", NeighbouringRelation.ADD_REMOVE, domain), folder


def asked(query: Distance | EvolutionaryTree, dataset: Dataset, folder: Path) -> Work:
    def work(executor: Executor, _: Path) -> str:
        records = open_records(folder, dataset.domain)
        release = query.compute(QueryContext(records, dataset, LOSS, SeededRandomness(1), executor))
        return hashlib.sha256(json.dumps(release.answer).encode()).hexdigest()

    return work


def measure(name: str, work: Work, processes: Processes, threads: int) -> tuple[float, float]:
    """Run it in three ways, print them, and return the seconds of the first two."""
    took: dict[str, float] = {}
    found: dict[str, str] = {}

    def run(way: str, executor: Executor) -> None:
        with TemporaryDirectory(dir=processes.data) as folder:
            start = perf_counter()
            found[way] = work(executor, Path(folder) / "version")
            took[way] = perf_counter() - start

    local = ThreadExecutor(threads)
    run("one", local)
    local.close()
    alive = processes.workers[-1]
    with processes.executor() as executor:
        run("two", executor)
        Timer(took["two"] / 2, alive.kill).start()
        run("killed", executor)
    alive.wait(60)
    processes.start_worker()
    processes.wait_for("scheduler", "Starting worker compute stream", len(processes.workers))
    same = "same bytes" if len(set(found.values())) == 1 else "DIFFERENT BYTES"
    print(
        f"{name:24} {took['one']:10.2f} {took['two']:12.2f} {took['killed']:12.2f}   {same}",
        flush=True,
    )
    if len(set(found.values())) > 1:
        raise SystemExit(1)
    return took["one"], took["two"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("PRIVYPURSE_DATA"))
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--least", type=int, default=10_000, help="edges of the first graph")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1, help="of the one process")
    options = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(TemporaryDirectory()))
        start = perf_counter()
        processes = closing.enter_context(cluster(folder))
        print(f"a scheduler and two workers are there after {perf_counter() - start:.1f} s")
        warm = preparation(generated(2000))
        threads = ThreadExecutor(1)
        with processes.executor() as executor:
            for way in (threads, executor):
                with TemporaryDirectory() as version:
                    warm(way, Path(version) / "version")
        print(f"{'seconds':24} {'one process':>10} {'two workers':>12} {'one killed':>12}")
        crossing: list[int] = []
        sizes = [options.least]
        while sizes[-1] < options.edges:
            sizes.append(min(10 * sizes[-1], options.edges))
        for edges in sizes:
            graph = generated(edges)
            one, two = measure(
                f"{edges} edges, generated", preparation(graph), processes, options.threads
            )
            crossing += [edges] if two < one else []
        print(f"two workers were faster at these numbers of edges: {crossing}")
        if options.data:
            for name in ("dblp", "gowalla"):
                graph = CodedGraph(*compressed_rows(*read_edge_list(Path(options.data), name)))
                measure(name, preparation(graph), processes, options.threads)
        tree = EvolutionaryTree(
            kind="tree", algorithm="evolutionary", positive_class="1", population=200
        )
        context = Distance(kind="distance", target="a0", context="max_dependency", context_size=3)
        for rows in (options.rows // 10, options.rows):
            dataset, stored = table(processes.data, rows)
            for query, name in ((tree, "tree"), (context, "max_dependency")):
                measure(
                    f"{name}, {rows} rows",
                    asked(query, dataset, stored),
                    processes,
                    options.threads,
                )


if __name__ == "__main__":
    main()
