"""Prepared records in a store: published whole, seen by every replica, and really deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import GraphDomain, NeighbouringRelation
from mechanisms.model.records import GraphRecords
from storage.assurance.stored_files import Comparison, compare
from storage.catalogue import retention
from storage.catalogue.datasets import Datasets
from storage.database import tables
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.errors import AlreadyExists, NotFound, OtherLedger, StoreFailed
from storage.files.arrays import write_arrays
from storage.people.users import Users
from storage.records import opened
from storage.records.tickets import Ticket
from storage.s3.remote import RemoteFiles
from tests.support.stores import StoreProcess, store_process
from tests.support.world import World, loss

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
        upload = self.datasets.begin_upload(name, actor=world.owner)
        self.datasets.publish(upload, self.prepared(name, value), actor=world.owner)

    def prepared(self, name: str, value: int) -> Path:
        stored = self.datasets.find(name)
        assert stored is not None
        staging = self.files.staging_folder(stored.id)
        arrays = {"indptr": np.full(5, value), "indices": np.arange(3)}
        write_arrays(staging, "graph", arrays)
        return staging

    def records(self, name: str) -> Any:
        stored = self.datasets.find(name)
        assert stored is not None
        return self.datasets.records(stored.id, stored.version, DOMAIN)

    def names(self, name: str = "graph") -> list[Any]:
        found = self.datasets.find(name)
        assert found is not None
        assert found.public is not None
        return list(found.public.domain.labels)  # type: ignore[union-attr, arg-type]

    def tops(self) -> set[str]:
        """The first parts of all names in the store."""
        return {name.partition("/")[0] for name in self.store.names("")}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database.open(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path)
    yield World(database, tmp_path)
    database.close()


@pytest.fixture
def replicas(world: World, server: StoreProcess, tmp_path: Path) -> list[Replica]:
    address = server.address()
    return [Replica(world, server, tmp_path / name, address) for name in ("one", "two")]


NAMED = GraphDomain(4, 3, ["a", "b", "c", "d"])


def register(
    world: World, replica: Replica, name: str = "graph", domain: GraphDomain | None = NAMED
) -> None:
    replica.datasets.register(
        name,
        owner=world.owner,
        description={"name": name, "kind": "graph"},
        domain=domain,
        neighbouring=NeighbouringRelation.EDGE,
        records_per_person=1,
        cap=loss(100),
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
    one.datasets.withdraw("graph", actor=world.owner)
    assert one.datasets.remove_unused("graph") == [1]
    # What is left is the list of names, which is public.
    assert one.tops() == {"nodes"}
    for path in (two.files.root / "store").rglob("*"):
        os.utime(path, (0, 0))
    two.store.drop_gone()
    two.datasets.forget_gone()
    assert not two.datasets._open._open
    for replica in replicas:
        assert [path.name for path in (replica.files.root / "store").glob("*")] == ["nodes"]


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
    before = set(one.store.names(""))
    monkeypatch.setattr(one.store._store, "put", fails)
    with pytest.raises(StoreFailed):
        one.publish(world, "graph", 2)
    for replica in (one, two):
        assert replica.records("graph").indptr.tolist() == [1] * 5
    assert set(one.store.names("")) == before


def fails(*_: object) -> None:
    raise StoreFailed("the store of prepared records cannot be used now")


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


def test_versions_are_removed_though_another_one_cannot_be(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = replicas
    for name in ("first", "second"):
        register(world, one, name)
        one.publish(world, name, 1)
        one.datasets.withdraw(name, actor=world.owner)
    remove, tried = one.files.remove_version, []

    def removed(dataset_id: int, version: int, folder: str | None) -> None:
        tried.append(dataset_id)
        if len(tried) == 1:
            fails()
        remove(dataset_id, version, folder)

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


# ------------------------------------------------------------------ transactions


def test_nothing_in_a_transaction_waits_for_the_store(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody's charges would wait too."""
    one, _ = replicas
    inside, once, asked = [], world.database._once, []

    def noted(work: Any) -> Any:
        inside.append(True)
        try:
            return once(work)
        finally:
            inside.pop()

    monkeypatch.setattr(world.database, "_once", noted)
    for way in ("put", "get", "holds", "names", "remove"):
        original = getattr(one.store._store, way)

        def outside(*args: Any, way: str = way, original: Any = original) -> Any:
            assert not inside, way
            asked.append(way)
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
        one.datasets.publish(99, one.prepared("graph", 3), actor=world.owner)
    one.datasets.withdraw("graph", actor=world.owner)
    one.datasets.remove_unused()
    one.datasets.sweep()
    assert one.names("later") == ["x", "y"]
    assert {"put", "names", "remove"} <= set(asked)
    assert one.tops() == {"nodes"}


def test_names_that_no_graph_was_given_do_not_stay(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    before = one.store.names("").keys()
    with pytest.raises(AlreadyExists):
        register(world, one)
    with pytest.raises(AlreadyExists):
        one.datasets.set_nodes("graph", ["x"], max_degree=None, actor=world.owner)
    assert one.store.names("").keys() == before
    assert one.names() == ["a", "b", "c", "d"]
    assert not any((one.files.root / "datasets" / "0").iterdir())


# ------------------------------------------------------------------ what is left


def age(replica: Replica, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have everything in the store look so much older."""
    names = replica.store.names
    monkeypatch.setattr(
        replica.store,
        "names",
        lambda folder: {name: at - seconds for name, at in names(folder).items()},
    )


def died(monkeypatch: pytest.MonkeyPatch, replica: Replica) -> None:
    """Have a process end before it can remove anything."""
    monkeypatch.setattr(replica.files, "_remove", lambda _: None)


def test_records_that_were_not_published_are_swept_by_anybody(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    before = one.store.names("").keys()
    died(monkeypatch, one)
    for _ in range(2):
        upload = one.datasets.begin_upload("graph", actor=world.owner)
        monkeypatch.setattr(world.database, "_once", fails)
        with pytest.raises(StoreFailed):
            one.datasets.publish(upload, one.prepared("graph", 2), actor=world.owner)
        monkeypatch.undo()
        died(monkeypatch, one)
        assert len(one.store.names("")) == len(before) + 3
        # As long as the upload is under way, by whomever, they may be published yet.
        age(two, monkeypatch, 7 * 86_400)
        two.datasets.sweep()
        assert len(one.store.names("")) == len(before) + 3
        one.datasets.refuse_upload(upload, {})
        two.datasets.sweep()
        assert two.store.names("").keys() == before
    assert two.records("graph").indptr.tolist() == [1] * 5


def test_a_version_that_comes_during_a_sweep_stays(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are read after the list: what has come in between, they know."""
    one, two = replicas
    register(world, one)
    age(two, monkeypatch, 7 * 86_400)
    names = two.store.names

    def listed(folder: str) -> dict[str, float]:
        one.publish(world, "graph", 1)
        return names(folder)

    monkeypatch.setattr(two.store, "names", listed)
    two.datasets.sweep()
    assert two.records("graph").indptr.tolist() == [1] * 5


def test_an_upload_that_died_a_day_ago_leaves_nothing(
    world: World, replicas: list[Replica]
) -> None:
    one, two = replicas
    register(world, one)
    before = one.store.names("").keys()
    upload = one.datasets.begin_upload("graph", actor=world.owner)
    one.files.keep(one.prepared("graph", 1), upload)
    path = one.files.root / "incoming" / "ab"
    path.write_bytes(b"source,target")
    tickets = one.files.tickets
    ticket = Ticket("graph", "olga", "ab", "text/csv", gzipped=False)
    tickets.leave(upload, tickets.offer(upload, ticket, path))
    for silent, left in ((retention.LOST_US - 60_000_000, 5), (retention.LOST_US + 60_000_000, 0)):
        world.database.write(
            lambda connection, silent=silent: connection.execute(
                update(tables.upload).values(lease_until=now_us() - silent)
            )
        )
        two.datasets.sweep()
        assert len(one.store.names("").keys() - before) == left
    with pytest.raises(NotFound):
        one.datasets.publish(upload, one.prepared("graph", 1), actor=world.owner)


def test_a_removed_version_that_comes_back_is_removed_again(
    world: World, replicas: list[Replica]
) -> None:
    """As when a bucket is put back from a copy."""
    one, _ = replicas
    register(world, one, domain=GraphDomain(4, 3))
    one.publish(world, "graph", 1)
    stored = one.store.names("")
    one.datasets.withdraw("graph", actor=world.owner)
    one.datasets.remove_unused()
    for name in stored:
        one.store.write(name, lambda out: out.write(b"records"))
    one.datasets.sweep()
    assert one.store.names("") == {}


@pytest.mark.usefixtures("world")
def test_what_cannot_be_removed_keeps_nothing_else(
    replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the store answers at all: one that does not is not asked for each file."""
    one, _ = replicas
    for number in (1, 2, 3):
        one.store.write(f"incoming/records-{number}", lambda out: out.write(b"records"))
    remove, asked = one.store.remove, []

    def removed(name: str) -> None:
        asked.append(name)
        if name == "incoming/records-1":
            fails()
        remove(name)

    monkeypatch.setattr(one.store, "remove", removed)
    with pytest.raises(StoreFailed):
        one.datasets.sweep()
    assert len(asked) == 1
    monkeypatch.setattr(one.store, "answers", lambda: True)
    with pytest.raises(StoreFailed):
        one.datasets.sweep()
    assert list(one.store.names("")) == ["incoming/records-1"]


def test_tickets_that_are_over_are_swept(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    before = one.store.names("").keys()
    running = one.datasets.begin_upload("graph", actor=world.owner)
    for upload in (running, running + 1):
        for name in ("upload", "records"):
            one.store.write(f"incoming/{name}-{upload}", lambda out: out.write(b"records"))
    two.datasets.sweep()
    assert two.store.names("incoming").keys() == {
        f"incoming/records-{running}",
        f"incoming/upload-{running}",
    }
    one.datasets.refuse_upload(running, {})
    two.datasets.sweep()
    assert two.store.names("").keys() == before


def test_what_no_row_can_tell_of_is_swept_when_it_is_old(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    one.datasets.claim_files()
    register(world, one)
    one.publish(world, "graph", 1)
    before = one.store.names("").keys()
    one.files.keep_labels(["x", "y"])
    for name in ("arrays/0123/0.npy", "cluster/ab/plan", "incoming/0123", "datasets/1/1"):
        one.store.write(name, lambda out: out.write(b"left"))
    everything = one.store.names("").keys()
    two.datasets.sweep()
    assert one.store.names("").keys() == everything
    age(two, monkeypatch, 86_400 + 60)
    two.datasets.sweep()
    assert one.store.names("").keys() == before
    assert "ledger" in before
    assert two.records("graph").indptr.tolist() == [1] * 5


def test_a_frozen_ledger_sweeps_nothing(world: World, replicas: list[Replica]) -> None:
    """It may have forgotten the rows."""
    one, _ = replicas
    one.store.write("incoming/records-7", lambda out: out.write(b"left"))
    register(world, one, domain=GraphDomain(4, 3))

    def freeze(value: int) -> None:
        change = update(tables.budget_account).values(frozen=value)
        world.database.write(lambda connection: connection.execute(change))

    freeze(1)
    one.datasets.sweep()
    assert one.tops() == {"incoming"}
    freeze(0)
    one.datasets.sweep()
    assert one.tops() == set()


@pytest.mark.usefixtures("world")
def test_a_store_is_of_one_ledger(replicas: list[Replica], tmp_path: Path) -> None:
    for replica in (*replicas, *replicas):
        replica.datasets.claim_files()
    other = Database.open(f"sqlite:///{tmp_path / 'other.db'}", tmp_path)
    (tmp_path / "other").mkdir()
    Users(other).bootstrap(tmp_path / "other" / "admin.key")
    with pytest.raises(OtherLedger):
        Datasets(other, replicas[0].files).claim_files()
    other.close()


# ------------------------------------------------------------------ names of nodes


def test_a_list_that_cannot_be_had_hides_nothing_else(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    register(world, one)
    register(world, one, "other")
    get = two.store._store.get
    monkeypatch.setattr(two.store._store, "get", fails)
    page = two.datasets.page(world.owner, 10)
    assert [stored.name for stored in page.items] == ["other", "graph"]
    for stored in (*page.items, two.datasets.find("graph")):
        assert stored is not None
        assert stored.public is not None
        assert stored.public.domain == GraphDomain(4, 3)
        assert stored.names is not None
        assert len(stored.names) == 4
        assert not stored.names.at_hand
        with pytest.raises(StoreFailed):
            stored.public.domain.label(0)  # type: ignore[union-attr]
    asked: list[str] = []
    monkeypatch.setattr(
        two.store._store, "get", lambda name, path: (asked.append(name), get(name, path))
    )
    assert two.names() == two.names() == ["a", "b", "c", "d"]
    found = two.datasets.find("graph")
    assert found is not None
    assert found.names is not None
    assert found.names.at_hand
    assert len(asked) == len(set(asked)) == 3


def test_a_list_that_is_lost_is_the_stores_failure(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    for name in one.store.names("nodes"):
        one.store.remove(name)
    with pytest.raises(StoreFailed):
        two.names()


# ------------------------------------------------------------------ room


def cached(replica: Replica) -> int:
    """How many versions are on its disk."""
    return len(list((replica.files.root / "store" / "arrays").glob("*")))


def test_what_was_used_last_stays(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    for value, name in enumerate("abc", start=1):
        register(world, one, name, GraphDomain(4, 3))
        one.publish(world, name, value)
    first = [two.records("a"), two.records("b")].pop(0)
    assert two.records("a") is first
    del first
    taken = sum(path.stat().st_size for path in (two.files.root / "store").rglob("*.*"))
    two.store._limit = taken
    ids = {name: two.datasets.find(name).id for name in "abc"}  # type: ignore[union-attr]
    two.records("c")
    # b was opened after a, and a was used after b.
    assert [two.datasets.is_open(ids[name], 1) for name in "abc"] == [True, False, True]
    assert cached(two) == 2
    # What a query reads stays open, and on the disk, whoever comes.
    reading = [two.records("a"), two.records("c")]
    assert two.records("b").indptr.tolist() == [2] * 5
    assert two.records("a") is reading[0]
    assert two.records("c") is reading[1]
    assert cached(two) == 3
    del reading
    two.store._make_room(0)
    assert [two.datasets.is_open(ids[name], 1) for name in "abc"] == [True, False, True]


def test_what_was_closed_counts_as_used_until_then(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    for value, name in enumerate("abc", start=1):
        register(world, one, name, GraphDomain(4, 3))
        one.publish(world, name, value)
    monkeypatch.setattr(opened, "MOST", 1)
    reading = two.records("a")
    two.records("b")
    for path in (two.files.root / "store" / "arrays").rglob("*"):
        os.utime(path, (1, 1))
    two.records("c")  # closes b
    del reading  # closes a
    two.store._limit = sum(path.stat().st_size for path in (two.files.root / "store").rglob("*.*"))
    two.store._make_room(two.store._limit // 3)
    values = {
        int(np.load(path)[0]) for path in (two.files.root / "store" / "arrays").glob("*/0.npy")
    }
    assert values == {1, 3}


def test_a_version_of_which_a_part_is_gone_is_closed(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    one.records("graph")
    one.datasets.forget_gone()
    assert one.datasets._open._open
    next((one.files.root / "store" / "arrays").rglob("manifest.json")).unlink()
    one.datasets.forget_gone()
    assert not one.datasets._open._open


# ------------------------------------------------------------------ what the store has lost


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
        cap=loss(1),
    )
    for name in one.store.names("nodes"):
        one.store.remove(name)
    compared = compare(world.database, lambda: one.store.names(""))
    assert compared.lost == [
        "version 1 of dataset1",
        "the node list of here",
        "the node list of there",
    ]
