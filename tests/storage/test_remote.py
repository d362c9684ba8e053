"""Prepared records in a store: published whole, seen by every replica, and really deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.domains import GraphDomain, NeighbouringRelation
from mechanisms.records import GraphRecords
from storage.arrays import write_arrays
from storage.database import Database
from storage.datasets import Datasets
from storage.errors import NotFound, StoreFailed
from storage.remote import RemoteFiles
from tests.storage.world import World
from tests.stores import StoreProcess, store_process

DOMAIN = GraphDomain(nodes=4, max_degree=3)


@pytest.fixture(scope="module")
def server() -> Iterator[StoreProcess]:
    with store_process() as process:
        yield process


class Replica:
    """The datasets of one database as one of several services has them."""

    def __init__(self, world: World, server: StoreProcess, folder: Path, address: str) -> None:
        self.store = server.cached(folder, address)
        self.files = RemoteFiles(folder, self.store)
        self.datasets = Datasets(world.database, self.files)

    def publish(self, world: World, name: str, value: int) -> None:
        stored = self.datasets.find(name)
        assert stored is not None
        upload = self.datasets.begin_upload(name, actor=world.owner)
        staging = self.files.staging_folder(stored.id)
        arrays = {"indptr": np.full(5, value), "indices": np.arange(3)}
        write_arrays(staging, "graph", arrays)
        self.datasets.publish(upload, staging, actor=world.owner)

    def records(self, name: str) -> Any:
        stored = self.datasets.find(name)
        assert stored is not None
        return self.datasets.records(stored.id, stored.version, DOMAIN)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database.open(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path)
    yield World(database, tmp_path)
    database.close()


@pytest.fixture
def replicas(world: World, server: StoreProcess, tmp_path: Path) -> list[Replica]:
    address = server.address()
    return [Replica(world, server, tmp_path / name, address) for name in ("one", "two")]


def register(world: World, replica: Replica, name: str = "graph") -> None:
    replica.datasets.register(
        name,
        owner=world.owner,
        description={"name": name, "kind": "graph"},
        domain=GraphDomain(4, 3, ["a", "b", "c", "d"]),
        neighbouring=NeighbouringRelation.EDGE,
        records_per_person=1,
        cap=world.dataset().cap,
    )


def test_both_replicas_read_what_either_publishes(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    for value, (writer, reader) in enumerate([(one, two), (two, one), (one, two)], start=1):
        writer.publish(world, "graph", value)
        for replica in (reader, writer):
            records = replica.records("graph")
            assert isinstance(records, GraphRecords)
            assert records.indptr.tolist() == [value] * 5
            found = replica.datasets.find("graph")
            assert found is not None
            assert found.public is not None
            assert list(found.public.domain.labels) == ["a", "b", "c", "d"]


def test_who_publishes_does_not_fetch(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    fetched: list[str] = []
    get = one.store._store.get
    monkeypatch.setattr(
        one.store._store, "get", lambda name, path: (fetched.append(name), get(name, path))
    )
    one.records("graph")
    assert all(name.startswith("datasets/") for name in fetched)


def test_a_removed_version_is_in_no_store_and_no_cache(
    world: World, replicas: list[Replica]
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    assert two.records("graph") is two.records("graph")
    labels = set(one.store.names("")) - set(one.store.names("datasets/"))
    one.datasets.withdraw("graph", actor=world.owner)
    assert one.datasets.remove_unused("graph") == [1]
    left = set(one.store.names(""))
    assert len(left) < len(labels)
    folders = {name.split("/")[1] for name in left if name.startswith("arrays/")}
    # What is left is the list of names, which is public.
    assert folders == {one.files._pointer(name).folder for name in left if "nodes" in name}
    for path in (two.files.root / "store").rglob("*"):
        os.utime(path, (0, 0))
    two.store.drop_gone()
    two.datasets.forget_gone()
    assert not two.datasets._open._open
    for replica in replicas:
        cached = {path.name for path in (replica.files.root / "store" / "arrays").glob("*")}
        assert cached <= folders


def test_what_is_not_published_is_not_kept(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    before = set(one.store.names(""))
    staging = one.files.staging_folder(1)
    write_arrays(staging, "graph", {"indptr": np.arange(3)})
    with pytest.raises(NotFound):
        one.datasets.publish(99, staging, actor=world.owner)
    assert set(one.store.names("")) == before


def test_nothing_is_published_before_the_store_has_it(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    put = one.store._store.put
    for refused in ("arrays/", "datasets/"):

        def refuse(path: Path, name: str, start: str = refused) -> None:
            if name.startswith(start):
                raise StoreFailed("the store of prepared records cannot be used now")
            put(path, name)

        monkeypatch.setattr(one.store._store, "put", refuse)
        world.database.write(
            lambda c: c.exec_driver_sql("UPDATE upload SET state = 1 WHERE state = 0")
        )
        with pytest.raises(StoreFailed):
            one.publish(world, "graph", 2)
        for replica in (one, two):
            assert replica.records("graph").indptr.tolist() == [1] * 5
    assert sum(name.startswith("datasets/") for name in one.store.names("")) == 2


def test_a_sweep_takes_what_nothing_names(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    kept = set(one.store.names(""))
    for name in ("arrays/0123/0.npy", "cluster/ab/plan", "incoming/upload-3"):
        one.store.write(name, lambda out: out.write(b"left"))
    two.files.sweep()
    assert len(one.store.names("")) == len(kept) + 3
    two.files.sweep(older_than=-60)
    assert set(one.store.names("")) == kept
    assert one.records("graph").indptr.tolist() == [1] * 5


def fails(*_: object) -> None:
    raise StoreFailed("the store of prepared records cannot be used now")


def test_who_may_not_see_a_graph_learns_nothing_from_its_node_list(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    monkeypatch.setattr(two.files, "labels", fails)
    assert two.datasets.find("graph", lambda row: row.owner_id != world.owner.id) is None
    with pytest.raises(StoreFailed):
        two.datasets.find("graph", lambda row: row.owner_id == world.owner.id)


def test_arrays_that_could_not_all_be_kept_are_removed(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    register(world, one)
    before = one.store.names("arrays")
    put, left = one.store.put, [1]

    def one_only(path: Path, name: str) -> None:
        if not left:
            fails()
        left.pop()
        put(path, name)

    monkeypatch.setattr(one.store, "put", one_only)
    with pytest.raises(StoreFailed):
        one.publish(world, "graph", 1)
    assert not left
    assert one.store.names("arrays").keys() == before.keys()


def test_a_start_goes_on_when_another_process_removes_a_version(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    names = two.store.names

    def listed(folder: str) -> dict[str, float]:
        return {**names(folder), "datasets/9/9": 0.0}  # gone before it is read

    monkeypatch.setattr(two.store, "names", listed)
    two.files.sweep()
    assert two.records("graph") is not None


def test_versions_are_removed_though_another_one_cannot_be(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    for name in ("first", "second"):
        register(world, one, name)
        one.publish(world, name, 1)
        one.datasets.withdraw(name, actor=world.owner)
    remove, tried = one.files.remove_version, []

    def removed(dataset_id: int, version: int) -> None:
        tried.append(dataset_id)
        if len(tried) == 1:
            fails()
        remove(dataset_id, version)

    monkeypatch.setattr(one.files, "remove_version", removed)
    with pytest.raises(StoreFailed):
        one.datasets.remove_unused()
    assert len(tried) == 2
    monkeypatch.setattr(one.files, "remove_version", remove)
    assert one.datasets.remove_unused() == [1]


def test_records_are_known_to_be_open(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    stored = one.datasets.find("graph")
    assert stored is not None
    assert not one.datasets.is_open(stored.id, stored.version)
    one.records("graph")
    assert one.datasets.is_open(stored.id, stored.version)
    assert not one.datasets.is_open(stored.id, stored.version + 1)
