"""Sweeps of a store: orphans go, and what a row names or may name stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import GraphDomain
from storage.catalogue import retention
from storage.catalogue.datasets import Datasets
from storage.catalogue.record_versions import RecordVersions
from storage.database import tables
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.errors import NotFound, OtherLedger, StoreFailed
from storage.people.users import Users
from storage.records.tickets import Ticket
from tests.support.store_replicas import Replica, fails, register
from tests.support.world import World


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
        upload = one.versions.begin_upload("graph", actor=world.owner)
        monkeypatch.setattr(world.database, "write", fails)
        with pytest.raises(StoreFailed):
            one.versions.publish(upload, one.prepared("graph", 2), actor=world.owner)
        monkeypatch.undo()
        died(monkeypatch, one)
        assert len(one.store.names("")) == len(before) + 3
        # While an upload is under way in any process, its files may still be published. So a sweep
        # keeps them, whatever their age.
        age(two, monkeypatch, 7 * 86_400)
        two.versions.sweep()
        assert len(one.store.names("")) == len(before) + 3
        one.versions.refuse_upload(upload, {})
        two.versions.sweep()
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
    two.versions.sweep()
    assert two.records("graph").indptr.tolist() == [1] * 5


def test_an_upload_that_died_a_day_ago_leaves_nothing(
    world: World, replicas: list[Replica]
) -> None:
    one, two = replicas
    register(world, one)
    before = one.store.names("").keys()
    upload = one.versions.begin_upload("graph", actor=world.owner)
    with one.files.keep(one.prepared("graph", 1), upload):
        pass
    path = one.files.root / "incoming" / "ab"
    path.write_bytes(b"source,target")
    tickets = one.files.tickets
    ticket = Ticket("graph", "olga", "ab", "text/csv", gzipped=False)
    tickets.leave(upload, tickets.offer(upload, ticket, path))
    for silent, remaining in (
        (retention.LOST_US - 60_000_000, 5),
        (retention.LOST_US + 60_000_000, 0),
    ):
        world.database.write(
            lambda connection, silent=silent: connection.execute(
                update(tables.upload).values(lease_until=now_us() - silent)
            )
        )
        two.versions.sweep()
        assert len(one.store.names("").keys() - before) == remaining
    with pytest.raises(NotFound):
        one.versions.publish(upload, one.prepared("graph", 1), actor=world.owner)


def test_a_removed_version_that_comes_back_is_removed_again(
    world: World, replicas: list[Replica]
) -> None:
    """As when a bucket is put back from a copy."""
    one, _ = replicas
    register(world, one, domain=GraphDomain(4, 3))
    one.publish(world, "graph", 1)
    stored = one.store.names("")
    one.versions.withdraw("graph", actor=world.owner)
    one.versions.remove_unused()
    for name in stored:
        one.store.write(name, lambda out: out.write(b"records"))
    one.versions.sweep()
    assert one.store.names("") == {}


@pytest.mark.usefixtures("world")
def test_what_cannot_be_removed_keeps_nothing_else(
    replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the store answers at all: one that does not is not asked for each file."""
    one, _ = replicas
    for number in (1, 2, 3):
        one.store.write(f"incoming/records-{number}", lambda out: out.write(b"records"))
    remove, requests = one.store.remove, []

    def removed(name: str) -> None:
        requests.append(name)
        if name == "incoming/records-1":
            fails()
        remove(name)

    monkeypatch.setattr(one.store, "remove", removed)
    with pytest.raises(StoreFailed):
        one.versions.sweep()
    assert len(requests) == 1
    monkeypatch.setattr(one.store, "answers", lambda: True)
    with pytest.raises(StoreFailed):
        one.versions.sweep()
    assert list(one.store.names("")) == ["incoming/records-1"]


def test_tickets_that_are_over_are_swept(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    before = one.store.names("").keys()
    running = one.versions.begin_upload("graph", actor=world.owner)
    for upload in (running, running + 1):
        for name in ("upload", "records"):
            one.store.write(f"incoming/{name}-{upload}", lambda out: out.write(b"records"))
    two.versions.sweep()
    assert two.store.names("incoming").keys() == {
        f"incoming/records-{running}",
        f"incoming/upload-{running}",
    }
    one.versions.refuse_upload(running, {})
    two.versions.sweep()
    assert two.store.names("").keys() == before


def test_what_no_row_can_tell_of_is_swept_when_it_is_old(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    one.versions.claim_files()
    register(world, one)
    one.publish(world, "graph", 1)
    before = one.store.names("").keys()
    with one.files.keep_labels(["x", "y"]):
        pass
    for name in ("arrays/0123/0.npy", "cluster/ab/plan", "incoming/0123", "datasets/1/1"):
        one.store.write(name, lambda out: out.write(b"left"))
    everything = one.store.names("").keys()
    two.versions.sweep()
    assert one.store.names("").keys() == everything
    age(two, monkeypatch, 86_400 + 60)
    two.versions.sweep()
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
    one.versions.sweep()
    assert one.tops() == {"incoming"}
    freeze(0)
    one.versions.sweep()
    assert one.tops() == set()


@pytest.mark.usefixtures("world")
def test_a_store_is_of_one_ledger(replicas: list[Replica], tmp_path: Path) -> None:
    for replica in (*replicas, *replicas):
        replica.versions.claim_files()
    other = Database.open(f"sqlite:///{tmp_path / 'other.db'}", tmp_path)
    (tmp_path / "other").mkdir()
    Users(other).bootstrap(tmp_path / "other" / "admin.key")
    files = replicas[0].files
    with pytest.raises(OtherLedger):
        RecordVersions(other, files, Datasets(other, files)).claim_files()
    other.close()
