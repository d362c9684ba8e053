"""One process against two workers of a cluster, and against two of which one is killed half way.

Prepares graphs, searches trees and draws contexts by ``max_dependency`` in all three ways; the
bytes must be the same, and the times say from which size a cluster is worth it. All of it runs on
this machine: one process has one thread for kernels, each worker has one too.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.queries.distance.body import Distance
from app.queries.parts.query import QueryContext
from app.queries.tree.evolutionary import EvolutionaryTree
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import random_edges, read_edge_list
from benchmarks.data.tables import Table, coded
from benchmarks.result import Cell, Result, timed
from benchmarks.rounds import clocked
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.model.executor import Executor
from storage.files.arrays import write_arrays
from storage.ingest import CodedGraph, UploadLimits
from storage.records.preparation import open_records, prepare
from tests.support.clusters import Processes, cluster
from tests.support.randomness import SeededRandomness

DIFFERENT = "works with different bytes"
Work = Callable[[Executor, Path], str]

ATTRIBUTES, LEVELS = 14, 4
LOSS = PrivacyLoss(10**9)
GRAPHS, ROWS = ("dblp", "gowalla"), 1_000_000


def generated(edges: int) -> CodedGraph:
    """A graph with some nodes of large degree, a fifth as many nodes as edges."""
    nodes = edges // 5
    return CodedGraph(*compressed_rows(*random_edges(edges, nodes, 1.5), nodes))


def preparation(graph: CodedGraph) -> Work:
    def work(executor: Executor, folder: Path) -> str:
        prepare(graph, folder, executor, UploadLimits(preparation_work=1 << 62))
        digest = hashlib.sha256()
        for path in sorted(folder.iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    return work


def stored(data: Path, rows: int) -> tuple[Table, Path]:
    """A stored table of independent attributes but for the class, which follows two of them."""
    random = np.random.default_rng(rows)
    levels = {f"a{number}": LEVELS for number in range(ATTRIBUTES)}
    codes = {name: random.integers(0, LEVELS, rows).astype(np.uint8) for name in levels}
    codes["class"] = ((codes["a0"] + codes["a1"]) % 2).astype(np.uint8)
    folder = data / f"table-{rows}"
    write_arrays(folder, "table", {f"codes:{name}": column for name, column in codes.items()})
    return coded("benchmark", codes, levels | {"class": 2}), folder


def answer(query: Distance | EvolutionaryTree, table: Table, folder: Path) -> Work:
    def work(executor: Executor, _: Path) -> str:
        records = open_records(folder, table.domain)
        context = QueryContext(records, table.dataset, LOSS, SeededRandomness(1), executor)
        return hashlib.sha256(json.dumps(query.compute(context).answer).encode()).hexdigest()

    return work


def compared(result: Result, name: str, work: Work, processes: Processes) -> list[Cell]:
    """Run it in three ways; a row of seconds. Different bytes are counted."""

    def run(executor: Executor) -> tuple[float, str]:
        with TemporaryDirectory(dir=processes.data) as folder:
            return clocked(lambda: work(executor, Path(folder) / "version"))

    local = ThreadExecutor(1)
    one, expected = run(local)
    local.close()
    alive = processes.workers[-1]
    with processes.executor() as executor:
        two, bytes_of_two = run(executor)
        Timer(two / 2, alive.kill).start()
        killed, after = run(executor)
    alive.wait(60)
    processes.start_worker()
    processes.wait_for("scheduler", "Starting worker compute stream", len(processes.workers))
    differing = len({expected, bytes_of_two, after}) > 1
    result.measure(DIFFERENT, result.measured[DIFFERENT].value + differing)
    result.measure(f"{name}: one process / two workers", one / two, "×")
    return [name, *map(timed, (one, two, killed))]


def works(setting: Setting, data: Path) -> Iterator[tuple[str, Work]]:
    """Each with its name, the smallest first."""
    for power in range(4, setting.size(8, 6)):
        yield f"10^{power} edges, generated", preparation(generated(10**power))
    if setting.quick:
        return
    for name in GRAPHS:
        yield name, preparation(CodedGraph(*compressed_rows(*read_edge_list(setting.data, name))))
    tree = EvolutionaryTree(
        kind="tree", algorithm="evolutionary", positive_class="1", population=200
    )
    context = Distance(kind="distance", target="a0", context="max_dependency", context_size=3)
    for rows in (ROWS // 10, ROWS):
        table = stored(data, rows)
        yield f"tree, {rows:,} rows", answer(tree, *table)
        yield f"max_dependency, {rows:,} rows", answer(context, *table)


def run(result: Result, setting: Setting) -> None:
    result.measure(DIFFERENT, 0)
    with TemporaryDirectory() as name, cluster(Path(name)) as processes:
        warm, threads = preparation(generated(2000)), ThreadExecutor(1)
        with processes.executor() as executor:
            for way in (threads, executor):
                with TemporaryDirectory() as version:
                    warm(way, Path(version) / "version")
        rows = [compared(result, *one, processes) for one in works(setting, processes.data)]
    result.table("seconds", ["work", "one process", "two workers", "one of them killed"], rows)


BENCHES = (
    Bench("cluster", "From which size on are two workers of a cluster faster than one process?",
          run, 300.0, ("one process with one thread",), (Bar(DIFFERENT, most=0),),
          edges_of(*GRAPHS)),
)  # fmt: skip
