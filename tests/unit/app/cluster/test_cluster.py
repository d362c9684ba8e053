"""Kernels on a cluster: the same bytes after losses, and no records in the scheduler."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs the extra `cluster`")

from app.cluster.executor import ClusterExecutor, ClusterFailed
from mechanisms.kernels.columns import stacked
from mechanisms.kernels.forests import confusion
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.kernels.subsets import purest_levels, subset_sums
from mechanisms.model.domains import CategoricalAttribute, TableDomain
from mechanisms.model.executor import Arrays, Executor, Inline, PartResult
from mechanisms.model.forest import forest
from mechanisms.model.records import TableRecords
from storage.cluster import scratch
from storage.files.arrays import open_arrays, write_arrays
from tests.support.clusters import Processes, cluster, impatient
from tests.support.patience import PATIENCE, until
from tests.unit.mechanisms.kernels.oracles import edge_list

NODES, ROWS = 600, 20_000
LEVELS = ("yes", "no")
TREE = {
    "attribute": "a",
    "branches": {"yes": {"label": "yes"}, "no": {"label": "no"}},
}


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    graph = nx.powerlaw_cluster_graph(NODES, 6, 0.5, seed=3)
    return compressed_rows(*edge_list(graph), NODES)


def table(folder: Path) -> TableRecords:
    """A table as the store opens it, with memory-mapped columns."""
    random = np.random.default_rng(5)
    if not folder.exists():
        columns = {name: random.integers(0, 2, ROWS).astype(np.uint8) for name in "abcd"}
        write_arrays(folder, "table", columns)
    return TableRecords(open_arrays(folder, "table")[1], {})


def prepared(rows: tuple[Any, Any], executor: Executor) -> dict[str, bytes]:
    columns = prepare_graph(*rows, executor)
    totals = prepare_totals(*rows, columns["co_degree"], executor)
    return {name: array.dtype.str.encode() + array.tobytes() for name, array in columns.items()} | {
        name: array.tobytes() for name, array in totals.items()
    }


def results(records: TableRecords, executor: Executor) -> list[Any]:
    """The counts of a tree search and of a choice of contexts."""
    domain = TableDomain(
        tuple(CategoricalAttribute(name, LEVELS) for name in "abcd"), "d", max_rows=ROWS
    )
    counts = confusion(records, forest([TREE], domain, "d", "yes"), executor, ROWS)
    codes = stacked([(records.codes[name], 2) for name in "abc"])
    levels, subsets = np.full(3, 2, np.int64), np.array([[0, 1], [0, 2], [1, 2]])
    sums = np.arange(ROWS + 1, dtype=np.int64) ** 2
    return [
        counts.true_positives.tolist(),
        counts.true_negatives.tolist(),
        subset_sums(codes, levels, subsets, sums, executor).tolist(),
        purest_levels(codes, levels, 0, subsets[2:], executor, ROWS).tolist(),
    ]


def test_the_bytes_are_those_of_one_machine(processes: Processes, rows: tuple[Any, Any]) -> None:
    records = table(processes.data / "table")
    with processes.executor() as executor:
        assert prepared(rows, executor) == prepared(rows, Inline())
        assert results(records, executor) == results(records, Inline())
    # The files of a job are deleted when it ends, and the copy of an array together with the array.
    assert list((processes.data / "cluster").iterdir()) == []


def test_stored_columns_are_named_and_never_copied(processes: Processes) -> None:
    records = table(processes.data / "table")
    with processes.executor() as executor:
        written: list[Path] = []

        def look(_: int) -> None:
            written.extend((processes.data / "cluster").glob("*.npy"))

        executor.spread(_total, dict(records.codes), lambda _: [0, 1], work=1, done=look)
        assert written == []
        executor.spread(_total, {"a": np.arange(9)}, lambda _: [0], work=1, done=look)
        assert len(set(written)) == 1


def test_small_work_stays_here(processes: Processes) -> None:
    with processes.executor(worth=100) as executor:
        assert executor.spread(_process, {}, lambda _: [0], work=99)[0][0][0] == os.getpid()
        assert executor.spread(_process, {}, lambda _: [0], work=100)[0][0][0] != os.getpid()


def test_what_fails_on_a_worker_fails_without_a_word(processes: Processes) -> None:
    with processes.executor() as executor:
        with pytest.raises(ClusterFailed, match="could not do its part"):
            executor.spread(_quoting, {"a": np.array([987654321])}, lambda _: [0], work=1)
        with pytest.raises(ZeroDivisionError):  # An error in the callback done stops a job.
            executor.spread(_total, {}, lambda _: [0, 0], work=1, done=lambda _: 1 // 0)
    for process in ("scheduler", "worker"):
        assert not re.search("987654321|ValueError", processes.log(process))
    assert "a part could not be done" in processes.log("worker")


def test_a_worker_of_another_version_does_nothing(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "KERNELS", "another state of the sources")
    with processes.executor() as executor, pytest.raises(ClusterFailed):
        executor.spread(_total, {}, lambda _: [0], work=1)
    assert "other kernels" in processes.log("worker")


def test_a_role_is_that_of_its_certificate(processes: Processes) -> None:
    with processes.executor("worker", patience=2) as executor:

        def refused() -> bool:
            # On a busy machine the client may give up before the scheduler refuses it. So the test
            # tries again.
            with pytest.raises(ClusterFailed):
                executor.spread(_total, {}, lambda _: [0], work=1)
            said = "refused: register-client is not for a worker to say"
            return said in processes.log("scheduler")

        until(refused)
    processes.start_worker(role="client")
    processes.wait_for("scheduler", "refused: register-worker is not for a client to say")
    assert processes.log("scheduler").count("Register worker") == 2
    processes.workers.pop().kill()
    stranger = Processes(processes.folder / "stranger")
    stranger.address = processes.address
    with stranger.executor(patience=2) as executor, pytest.raises(ClusterFailed):
        executor.spread(_total, {}, lambda _: [0], work=1)


def test_a_lost_worker_costs_time_and_a_lost_scheduler_the_work(
    tmp_path: Path, rows: tuple[Any, Any]
) -> None:
    with cluster(tmp_path) as processes, processes.executor() as executor:
        expected, killed = prepared(rows, Inline()), []

        def kill(share: float) -> None:
            if not killed and share > 0:
                killed.append(share)
                processes.workers[0].kill()

        columns = prepare_graph(*rows, executor, kill)
        assert killed[0] < 1
        for name, column in columns.items():
            assert column.dtype.str.encode() + column.tobytes() == expected[name]

        def kill_scheduler(_: int) -> None:
            assert processes.scheduler is not None
            processes.scheduler.kill()
            impatient(executor, 2)

        with pytest.raises(ClusterFailed):
            executor.spread(_slow, {}, lambda _: range(40), work=1, done=kill_scheduler)
        with pytest.raises(ClusterFailed):
            executor.spread(_total, {}, lambda _: [0], work=1)
        assert list((processes.data / "cluster").iterdir()) == []


def test_the_scheduler_never_holds_what_records_are(processes: Processes) -> None:
    canaries = [
        np.random.default_rng(seed).integers(0, 2**62, 4).astype(np.int64) for seed in (1, 2)
    ]
    stored = np.concatenate([canaries[0], np.zeros(1000, np.int64)])
    with processes.executor() as executor:

        def look(part: int) -> None:
            if part > 0:
                return
            assert processes.scheduler is not None
            memory = process_memory(processes.scheduler.pid)
            assert len(memory) > 10_000_000
            for canary in canaries:
                assert canary.tobytes() not in memory
                assert not any(str(number).encode() in memory for number in canary)
            content = b"".join(process_memory(worker.pid) for worker in processes.workers)
            # Workers hold the records, so a search of their memory must find the canary numbers.
            # Otherwise the search of the scheduler's memory, which finds none, would prove nothing.
            assert canaries[0].tobytes() in content

        parts = [canaries[1], canaries[1]]
        outcome = executor.spread(_with_part, {"a": stored}, lambda _: parts, work=1, done=look)
        assert outcome[0][0][:4].tolist() == (canaries[0] ^ canaries[1]).tolist()
    for process in ("scheduler", "worker"):
        for canary in canaries:
            assert not any(str(number) in processes.log(process) for number in canary)


def process_memory(pid: int) -> bytes:
    """The memory of a process, except its libraries: written, writable and mapped from data."""
    chunks = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            bounds, permissions, *_ = line.split()
            if "w" in permissions or ".npy" in line:
                first, last = (int(bound, 16) for bound in bounds.split("-"))
                memory.seek(first)
                with suppress(OSError):  # The process may have freed this memory meanwhile.
                    chunks.append(memory.read(last - first))
    return b"".join(chunks)


def _total(arrays: Arrays, part: int) -> PartResult:
    return (np.array([sum(int(array.sum()) for array in arrays.values()) + part]),)


def _process(arrays: Arrays, part: int) -> PartResult:  # noqa: ARG001 - the form of a kernel
    return (np.array([os.getpid()]),)


def _quoting(arrays: Arrays, part: int) -> PartResult:  # noqa: ARG001 - the form of a kernel
    raise ValueError(f"cannot be: {arrays['a'][0]}")


def _slow(arrays: Arrays, part: int) -> PartResult:  # noqa: ARG001 - the form of a kernel
    time.sleep(0.2)
    return ()


def _with_part(arrays: Arrays, part: Any) -> PartResult:
    array = arrays["a"].copy()
    array[:4] ^= part
    return (array,)


def test_an_executor_is_needed_for_nothing_small() -> None:
    """A service starts without its cluster; small work never uses it."""
    executor = ClusterExecutor(Inline(), "tcp://127.0.0.1:1", None, _nowhere(), worth=1)
    assert executor.spread(_total, {}, lambda _: [3], work=0)[0][0][0] == 3


def _nowhere() -> Any:
    return None


class Silent:
    """Accepts connections and never replies, like a scheduler that is suspended."""

    def __enter__(self) -> str:
        self._listening = socket.create_server(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._listening.close()


def test_all_who_wait_for_a_silent_scheduler_fail_together() -> None:
    """Eight concurrent queries share one attempt to connect instead of making eight in a row."""
    attempts: list[object] = []

    class Counting(ClusterExecutor):
        def _connect(self) -> Any:
            attempts.append(self)
            return super()._connect()

    with Silent() as address, ThreadPoolExecutor(8) as pool:
        executor = Counting(Inline(), address, None, _nowhere(), worth=0, patience=2)

        together = Barrier(8)

        def ask(_: int) -> None:
            together.wait(PATIENCE)
            with pytest.raises(ClusterFailed, match="cannot be reached"):
                executor.spread(_total, {}, lambda _: [0], work=1)

        list(pool.map(ask, range(8)))
    assert len(attempts) <= 2


def test_a_stopped_scheduler_fails_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its connections open, so only missing replies reveal that it is stopped."""
    monkeypatch.setattr("app.cluster.executor.BEAT", 0.5)
    with cluster(tmp_path, workers=1) as processes, processes.executor() as executor:
        assert executor.spread(_total, {}, lambda _: [7], work=1)[0][0][0] == 7
        scheduler = processes.scheduler
        assert scheduler is not None

        def stop(_: int) -> None:
            scheduler.send_signal(signal.SIGSTOP)
            impatient(executor, 2)

        with pytest.raises(ClusterFailed, match="does not answer"):
            executor.spread(_slow, {}, lambda _: range(40), work=1, done=stop)
        for _ in range(2):
            with pytest.raises(ClusterFailed, match="cannot be reached"):
                executor.spread(_total, {}, lambda _: [0], work=1)
        assert list((processes.data / "cluster").iterdir()) == []
        scheduler.send_signal(signal.SIGCONT)
        processes.wait_for("scheduler", "Starting worker compute stream", 1)
        impatient(executor, PATIENCE)

        def works() -> bool:
            with suppress(ClusterFailed):
                return bool(executor.spread(_total, {}, lambda _: [7], work=1)[0][0][0] == 7)
            return False

        until(works)
