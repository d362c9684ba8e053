"""Versions in a store: published whole, seen by every replica, and really deleted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.records import GraphRecords
from storage.assurance.stored_files import Comparison, compare
from storage.database.database import Transaction
from storage.errors import AlreadyExists, NotFound, StoreFailed
from storage.files.arrays import write_arrays
from tests.support.store_replicas import NAMED, Replica, fails, register
from tests.support.world import World, allowance


def test_both_replicas_read_what_either_publishes(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    for value, (writer, reader) in enumerate([(one, two), (two, one), (one, two)], start=1):
        writer.publish(world, "graph", value)
        for replica in (reader, writer):
            records = replica.records("graph")
            assert isinstance(records, GraphRecords)
            assert records.indptr.tolist() == [value] * 5
            assert replica.names() == ["a", "b", "c", "d"]


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
    assert fetched == []


def test_a_removed_version_is_in_no_store_and_no_cache(
    world: World, replicas: list[Replica]
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    assert two.records("graph") is two.records("graph")
    assert one.names() == two.names() == ["a", "b", "c", "d"]
    one.versions.withdraw("graph", actor=world.owner)
    assert one.versions.remove_unused("graph") == [1]
    # After a removal only the list of node names is left in the store; it is public.
    assert one.tops() == {"nodes"}
    for path in (two.files.root / "store").rglob("*"):
        os.utime(path, (0, 0))
    two.store.drop_gone()
    two.versions.opened.forget_removed()
    assert two.versions.opened.get(1, 1) is None
    for replica in replicas:
        assert [path.name for path in (replica.files.root / "store").glob("*")] == ["nodes"]


def test_what_is_not_published_is_not_kept(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    before = set(one.store.names(""))
    staging = one.files.staging_folder(1)
    write_arrays(staging, "graph", {"indptr": np.arange(3)})
    with pytest.raises(NotFound):
        one.versions.publish(99, staging, actor=world.owner)
    assert set(one.store.names("")) == before


def test_nothing_is_published_before_the_store_has_it(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    before = set(one.store.names(""))
    monkeypatch.setattr(one.store._store, "put", fails)
    with pytest.raises(StoreFailed):
        one.publish(world, "graph", 2)
    for replica in (one, two):
        assert replica.records("graph").indptr.tolist() == [1] * 5
    assert set(one.store.names("")) == before


def test_arrays_that_could_not_all_be_kept_are_removed(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    register(world, one)
    before = one.store.names("arrays")
    put, failures = one.store.put, [1]

    def one_only(path: Path, name: str) -> None:
        if not failures:
            fails()
        failures.pop()
        put(path, name)

    monkeypatch.setattr(one.store, "put", one_only)
    with pytest.raises(StoreFailed):
        one.publish(world, "graph", 1)
    assert not failures
    assert one.store.names("arrays").keys() == before.keys()


def test_versions_are_removed_though_another_one_cannot_be(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    for name in ("first", "second"):
        register(world, one, name)
        one.publish(world, name, 1)
        one.versions.withdraw(name, actor=world.owner)
    remove, tried = one.files.remove_version, []

    def removed(dataset_id: int, version: int, folder: str | None) -> None:
        tried.append(dataset_id)
        if len(tried) == 1:
            fails()
        remove(dataset_id, version, folder)

    monkeypatch.setattr(one.files, "remove_version", removed)
    with pytest.raises(StoreFailed):
        one.versions.remove_unused()
    assert len(tried) == 2
    monkeypatch.setattr(one.files, "remove_version", remove)
    assert one.versions.remove_unused() == [1]


def test_a_query_reads_what_is_open(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    stored = one.datasets.find("graph")
    assert one.versions.opened.get(stored.id, stored.version) is None
    one.records("graph")
    assert one.versions.opened.get(stored.id, stored.version) is not None
    assert one.versions.opened.get(stored.id, stored.version + 1) is None


def test_nothing_in_a_transaction_waits_for_the_store(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody's charges would wait too."""
    one, _ = replicas
    inside, run, requests = [], Transaction.run, []

    def noted(self: Transaction, work: Any) -> Any:
        inside.append(True)
        try:
            return run(self, work)
        finally:
            inside.pop()

    monkeypatch.setattr(Transaction, "run", noted)
    for way in ("put", "get", "holds", "names", "remove"):
        original = getattr(one.store._store, way)

        def outside(*args: Any, way: str = way, original: Any = original) -> Any:
            assert not inside, way
            requests.append(way)
            return original(*args)

        monkeypatch.setattr(one.store._store, way, outside)
    register(world, one)
    with pytest.raises(AlreadyExists):
        register(world, one)
    register(world, one, "later", None)
    with pytest.raises(AlreadyExists):
        one.datasets.set_nodes("graph", ["x"], max_degree=None, actor=world.owner)
    one.datasets.set_nodes("later", ["x", "y"], max_degree=None, actor=world.owner)
    for value in (1, 2):
        one.publish(world, "graph", value)
    with pytest.raises(NotFound):
        one.versions.publish(99, one.prepared("graph", 3), actor=world.owner)
    one.versions.withdraw("graph", actor=world.owner)
    one.versions.remove_unused()
    one.versions.sweep()
    assert one.names("later") == ["x", "y"]
    assert {"put", "names", "remove"} <= set(requests)
    assert one.tops() == {"nodes"}


def test_what_was_published_to_a_folder_is_in_no_store(
    world: World, replicas: list[Replica]
) -> None:
    """As when a store is named to a ledger that had none."""
    one, _ = replicas
    register(world, one, "here")
    one.publish(world, "here", 1)
    world.dataset()
    compared = compare(world.database, lambda: one.store.names(""))
    assert compared == Comparison(["version 1 of dataset1"], 0)
    world.datasets.register(
        "there",
        owner=world.owner,
        description={"name": "there", "kind": "graph"},
        domain=NAMED,
        neighbouring=NeighbouringRelation.EDGE,
        records_per_person=1,
        cap=allowance(1),
    )
    for name in one.store.names("nodes"):
        one.store.remove(name)
    compared = compare(world.database, lambda: one.store.names(""))
    assert compared.lost == [
        "version 1 of dataset1",
        "the node list of here",
        "the node list of there",
    ]
