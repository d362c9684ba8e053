"""What processes share: the same contract in a mounted folder and in a store."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from storage.cluster.scratch import Scratch
from storage.errors import StoreFailed
from storage.files.shared import Shared
from storage.records.data_folder import Files
from storage.records.tickets import Ticket, Tickets
from storage.s3 import cache, objects
from storage.s3.cache import CachedStore
from tests.support.patience import PATIENCE, until
from tests.support.stores import KEY, StoreProcess, store_process

#: Returns the shared files as a process of the given name opens them. With an object store, each
#: process caches them in a data folder of its own.
Processes = Callable[[str], Shared]


@pytest.fixture(scope="module")
def server() -> Iterator[StoreProcess]:
    with store_process() as process:
        yield process


@pytest.fixture(params=["mounted", "store"])
def process(request: pytest.FixtureRequest, server: StoreProcess, tmp_path: Path) -> Processes:
    if request.param == "mounted":
        return lambda _: Shared(tmp_path)
    address = server.address()

    def new_shared(name: str) -> Shared:
        (tmp_path / name).mkdir(exist_ok=True)
        return server.cached(tmp_path / name, address)

    return new_shared


def put(shared: Shared, name: str, content: bytes) -> None:
    shared.write(name, lambda out: out.write(content))


def test_what_one_writes_the_other_reads(process: Processes) -> None:
    one, two = process("one"), process("two")
    put(one, "cluster/a.npy", b"array")
    assert two.read("cluster/a.npy") == b"array"
    with two.file("cluster/a.npy") as path:
        assert path.read_bytes() == b"array"
        assert path.stat().st_mode & 0o777 == 0o600
        assert two.name_of(path) == "cluster/a.npy"
    put(one, "cluster/a.npy", b"another")
    assert two.read("cluster/a.npy") == b"another"
    assert two.holds("cluster/a.npy")
    written = two.names("cluster")
    assert list(written) == ["cluster/a.npy"]
    assert abs(written["cluster/a.npy"] - time.time()) < 60
    assert two.names("incoming") == {}


def test_what_is_removed_is_gone_for_both(process: Processes) -> None:
    one, two = process("one"), process("two")
    for way in (one.remove, two.remove):
        put(one, "cluster/job/1", b"found")
        way("cluster/job/1")
        way("cluster/job/1")
        for shared in (one, two):
            assert not shared.holds("cluster/job/1")
            with pytest.raises(FileNotFoundError):
                shared.read("cluster/job/1")
            with pytest.raises(FileNotFoundError), shared.file("cluster/job/1"):
                pass
    assert one.names("cluster") == {}


def test_what_cannot_be_written_whole_is_not_there(process: Processes) -> None:
    one = process("one")

    def content(out: object) -> None:
        out.write(b"half")  # type: ignore[attr-defined]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        one.write("cluster/job/plan", content)
    assert one.names("cluster") == {}


def test_an_upload_goes_on_elsewhere(process: Processes, tmp_path: Path) -> None:
    shared = process("one")
    one, two = Tickets(shared), Tickets(process("two"))
    folder = tmp_path / "one" if isinstance(shared, CachedStore) else tmp_path
    path = folder / "incoming" / "ab12"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"source,target\n")
    ticket = one.offer(17, Ticket("graph", "olga", "ab12", "text/csv", gzipped=False), path)
    assert ticket.file == ("records-17" if isinstance(shared, CachedStore) else "ab12")
    one.leave(17, ticket)
    assert two.uploads() == [17]
    assert two.find(17) == ticket
    two.leave(17, ticket.again())
    assert one.find(17) == ticket.again()
    with two.records(ticket) as path:
        assert path.read_bytes() == b"source,target\n"
    two.drop(17, ticket)
    assert one.find(17) is None
    assert one.uploads() == []
    assert shared.names("incoming") == {}
    with pytest.raises(FileNotFoundError), two.records(ticket):
        pass


def _doubled(arrays: dict[str, np.ndarray], part: int) -> tuple[np.ndarray, ...]:
    return (arrays["a"] * 2 + part,)


def test_a_job_is_done_elsewhere(process: Processes) -> None:
    service, worker = Scratch(process("service")), Scratch(process("worker"))
    array = np.arange(5)
    with service.job(_doubled, {"a": array}, [0, 1]) as name:
        job = worker.open(name)
        assert job.arrays["a"].flags.writeable == array.flags.writeable
        for part in job.parts:
            worker.write(name, part, job.kernel(job.arrays, part))
        assert [service.read(name, part)[0].tolist() for part in (0, 1)] == [
            [0, 2, 4, 6, 8],
            [1, 3, 5, 7, 9],
        ]
        assert not worker.is_over(name)
    assert worker.is_over(name)
    # The job is over, so the result that a worker writes too late is removed again.
    worker.write(name, 0, (np.arange(3),))
    shared = process("third")
    assert [name for name in shared.names("cluster") if not name.endswith(".npy")] == []


# ------------------------------------------------------- shared copies of arrays, object stores


@pytest.mark.parametrize("hours", [13, 25])
def test_what_is_read_for_days_is_there_after_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """A copy goes with its age, however long a service keeps the array and asks for it."""
    files = Files(tmp_path)
    scratch, array, now = Scratch(files.shared), np.arange(5), time.time()
    with monkeypatch.context() as earlier:
        earlier.setattr(time, "time", lambda: now - hours * 3600)
        with scratch.job(_doubled, {"a": array}, [0]):
            pass
    (copy,) = (tmp_path / "cluster").glob("*.npy")
    os.utime(copy, (now - hours * 3600,) * 2)
    files.sweep()
    with scratch.job(_doubled, {"a": array}, [0]) as name:
        assert scratch.open(name).arrays["a"].tolist() == array.tolist()
        # The new job has written the shared copy of its array again, so no sweep removes the copy
        # while the job may still read it.
        assert copy.stat().st_mtime > now - 60


@pytest.fixture
def address(server: StoreProcess) -> str:
    return server.address()


def new(server: StoreProcess, folder: Path, address: str, limit: int = 2**30) -> CachedStore:
    folder.mkdir(exist_ok=True)
    return server.cached(folder, address, limit)


def test_what_comes_back_is_what_was_stored_or_nothing(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    store = new(server, tmp_path / "one", address)
    put(store, "arrays/ab/0.npy", b"what was stored")
    bucket, files = address.removeprefix("s3://"), server.objects(address)._files
    digest = files.metadata(f"{bucket}/arrays/ab/0.npy")
    for content, metadata in (
        (b"what was Stored", digest),
        (b"what was store", digest),
        (b"x", {}),
    ):
        files.pipe_file(f"{bucket}/arrays/ab/0.npy", content, Metadata=metadata)
        with pytest.raises(StoreFailed, match="not the one that was stored"):
            store.read("arrays/ab/0.npy")
        with (
            pytest.raises(StoreFailed, match="not the one that was stored"),
            store.file("arrays/ab/0.npy"),
        ):
            pass
    assert list((tmp_path / "one" / "store").iterdir()) == []


def test_a_large_file_goes_in_parts_and_comes_back(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new(server, tmp_path / "one", address)
    monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda *_, **__: 5 * 2**20)
    content = os.urandom(11 * 2**20)
    put(store, "arrays/ab/0.npy", content)
    assert store.read("arrays/ab/0.npy") == content


def test_the_cache_is_bounded_and_keeps_what_was_used(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    store = new(server, tmp_path / "one", address, limit=250)
    for name in "abc":
        put(store, f"arrays/{name}/0.npy", name.encode() * 100)
    at = time.time() - 1000

    def use(name: str) -> Path:
        nonlocal at
        with store.file(f"arrays/{name}/0.npy") as path:
            assert path.read_bytes() == name.encode() * 100
        os.utime(path, (at, at := at + 1))
        return path

    a, b = use("a"), use("b")
    assert use("a") == a
    c = use("c")
    assert (a.exists(), b.exists(), c.exists()) == (True, False, True)
    assert not b.parent.exists()
    # The cache never removes a file that is open, even if its files exceed the limit on its size.
    with ExitStack() as stack:
        names = [f"arrays/{name}/0.npy" for name in "acb"]
        assert all(path.exists() for path in [stack.enter_context(store.file(n)) for n in names])
    use("b")


def test_what_has_gone_from_the_store_goes_from_every_cache(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    one, two = (new(server, tmp_path / name, address) for name in ("one", "two"))
    for name in "ab":
        put(one, f"arrays/{name}/0.npy", b"records")
        for shared in (one, two):
            with shared.file(f"arrays/{name}/0.npy") as path:
                os.utime(path, (0, 0))
    one.remove("arrays/a/0.npy")
    assert sorted(path.name for path in (tmp_path / "one" / "store" / "arrays").iterdir()) == ["b"]
    two.drop_gone()
    assert sorted(path.name for path in (tmp_path / "two" / "store" / "arrays").iterdir()) == ["b"]


def test_what_is_to_go_soon_goes_without_waiting(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    one = new(server, tmp_path / "one", address)
    put(one, "cluster/ab.npy", b"array")
    one.start()
    one.remove_soon("cluster/ab.npy")
    one.close()
    assert one.names("cluster") == {}


def test_what_is_mapped_stays_until_it_is_not(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    store = new(server, tmp_path / "one", address, limit=250)
    scratch = Scratch(store)
    for name in "ab":
        put(store, f"cluster/{name}.npy", b"")
        store.write(f"cluster/{name}.npy", lambda out: np.save(out, np.arange(4)))
    a = scratch._map("cluster/a.npy", False)
    b = scratch._map("cluster/b.npy", False)
    folder = tmp_path / "one" / "store" / "cluster"
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy"]
    del a
    store._make_room(0)
    assert [path.name for path in folder.iterdir()] == ["b.npy"]
    del b
    store._make_room(250)
    assert not folder.exists()
    assert not store._pins


def test_the_end_waits_for_no_store(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, request, answer = new(server, tmp_path / "one", address), Event(), Event()

    def remove(_: str) -> None:
        request.set()
        answer.wait(60)

    monkeypatch.setattr(cache, "CLOSING", 0.2)
    monkeypatch.setattr(store._store, "remove", remove)
    store.start()
    store.remove_soon("cluster/ab.npy")
    assert request.wait(60)
    ending = Thread(target=store.close, daemon=True)
    ending.start()
    ending.join(PATIENCE)
    assert not ending.is_alive()
    answer.set()


def test_whether_the_store_answers_is_known_without_waiting(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, answer = new(server, tmp_path / "one", address), Event()
    holds, requests = store._store.holds, []

    def ask(name: str) -> bool:
        requests.append(name)
        if answer.is_set():
            raise StoreFailed
        return holds(name)

    monkeypatch.setattr(cache, "ASK", 0.05)
    monkeypatch.setattr(cache, "PATIENCE", 2.0)
    monkeypatch.setattr(store._store, "holds", ask)
    assert not store.answers()
    put(store, cache.OWNER, b"")
    store.watch()
    until(lambda: len(requests) > 2)
    until(store.answers)
    answer.set()
    until(lambda: not store.answers())
    answer.clear()
    until(store.answers)
    # An emptied object store still replies. But it lacks the file ``OWNER``, so it counts as
    # failed.
    store.remove(cache.OWNER)
    until(lambda: not store.answers())
    store.close()
    # A probe of the store that was under way at the call of ``close`` could still find the file
    # ``OWNER``. So the test waits until the probing thread has ended.
    until(lambda: "store-probe" not in {thread.name for thread in threading.enumerate()})
    put(store, cache.OWNER, b"")
    time.sleep(0.2)
    assert not store.answers()


def test_folders_of_other_tools_are_no_files(
    server: StoreProcess, address: str, tmp_path: Path
) -> None:
    store = new(server, tmp_path / "one", address)
    put(store, "cluster/job/1", b"found")
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    for folder in ("cluster/", "cluster/job/", "cluster/empty/"):
        store._store._files.call_s3("put_object", Bucket=bucket, Key=f"{prefix}/{folder}", Body=b"")
    assert list(store._store.names("cluster")) == ["cluster/job/1"]
    assert list(store.names("")) == ["cluster/job/1"]


def test_what_has_its_name_has_survived(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a file with a name would be taken for whole."""
    store, synced = new(server, tmp_path / "one", address), []
    put(store, "cluster/ab", b"found")
    place = store._place

    def placed(path: Path, final: Path) -> None:
        assert synced == [path]
        place(path, final)

    monkeypatch.setattr(cache, "sync", synced.append)
    monkeypatch.setattr(store, "_place", placed)
    with store.file("cluster/ab") as path:
        assert path.exists()
    assert synced[1:] == [path.parent]


def test_one_part_at_a_time_is_in_memory(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new(server, tmp_path / "one", address)
    monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda *_, **__: 5 * 2**20)
    files = store._store._files
    call, under_way, most = files._call_s3, [], []

    async def counted(method: str, *args: Any, **options: Any) -> Any:
        under_way.append(method)
        most.append(under_way.count("upload_part"))
        try:
            return await call(method, *args, **options)
        finally:
            under_way.remove(method)

    monkeypatch.setattr(files, "_call_s3", counted)
    put(store, "arrays/ab/0.npy", bytes(16 * 2**20))
    assert most.count(1) >= 4
    assert max(most) == 1


def test_records_go_before_their_ticket(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When only one of both can be removed, it is what is private."""
    store = new(server, tmp_path / "one", address)
    tickets, removed = Tickets(store), []
    monkeypatch.setattr(store, "remove", removed.append)
    tickets.drop(7, Ticket("graph", "olga", "ab12", "text/csv", gzipped=False))
    assert removed == ["incoming/ab12", "incoming/records-7", "incoming/upload-7"]


def test_one_attempt_is_enough_for_all_who_wait(
    server: StoreProcess, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, requests, waiting = new(server, tmp_path / "one", address), [], Event()
    begun: list[object] = []

    def begin() -> object:
        """Called by all who fetch, once they have taken the time of their own attempt."""
        begun.append(fetch_of_one_file())
        return begun[-1]

    def get(name: str, _: Path) -> None:
        requests.append(name)
        waiting.wait(60)
        raise StoreFailed

    def fetch(_: int) -> bool:
        with pytest.raises(StoreFailed), store.file("arrays/ab/0.npy"):
            pass
        return True

    fetch_of_one_file = cache._Fetch
    monkeypatch.setattr(cache, "_Fetch", begin)
    monkeypatch.setattr(store._store, "get", get)
    with ThreadPoolExecutor(8) as pool:
        racing = [pool.submit(fetch, number) for number in range(8)]
        until(lambda: len(begun) == 8)
        waiting.set()
        assert all(future.result() for future in racing)
    assert requests == ["arrays/ab/0.npy"]


@pytest.mark.parametrize("name", ["../a", "/a", "a/../b", ".a", "a//b", "A", ""])
def test_names_stay_below_the_folder(
    server: StoreProcess, address: str, tmp_path: Path, name: str
) -> None:
    store = new(server, tmp_path / "one", address)
    for way in (store.read, store.holds, store.remove):
        with pytest.raises(ValueError):
            way(name)


def test_a_store_that_is_not_there_says_so_and_nothing_else(
    tmp_path: Path, server: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "CONNECT", 1)
    nowhere = objects.ObjectStore("s3://records/secret", endpoint="http://127.0.0.1:9", **KEY)
    no_bucket = objects.ObjectStore("s3://missing/secret", endpoint=server.endpoint, **KEY)
    for store in (nowhere, no_bucket):
        shared = CachedStore(store, tmp_path, 2**30)
        for way in (lambda s: s.names("cluster"), lambda s: put(s, "cluster/ab", b"secret")):
            with pytest.raises(StoreFailed) as caught:
                way(shared)
            assert "secret" not in str(caught.value)
            assert "127.0.0.1" not in str(caught.value)
