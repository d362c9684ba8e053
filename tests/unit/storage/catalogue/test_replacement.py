"""Replacing a description: refused by a grant, records, names and uploads; every reader sees it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event, update

from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from storage.catalogue.datasets import Datasets, StoredDataset
from storage.database import tables
from storage.errors import AlreadyExists, DescriptionReplaced, NotFound, UploadRunning
from tests.support.world import World, allowance, check_invariants, contents, loss

# The stored text of this domain is as long as that of the domain it replaces. So a cache that
# compares only lengths would fail these tests.
ANOTHER = GraphDomain(nodes=5, max_degree=2)


def replace(world: World, name: str, **changes: Any) -> StoredDataset:
    fields: dict[str, Any] = {
        "description": {"name": name, "kind": "graph", "description": "another"},
        "domain": ANOTHER,
        "neighbouring": NeighbouringRelation.EDGE,
        "records_per_person": 2,
        "cap": allowance(3, "0.5"),
    }
    return world.datasets.replace(name, actor=world.owner, **{**fields, **changes})


def test_every_process_reads_the_new_description(world: World) -> None:
    old = world.dataset(ready=False)
    other_process = Datasets(world.database, world.files)
    assert other_process.find(old.name) == old
    new = replace(world, old.name)
    assert new.public == Dataset(old.name, NeighbouringRelation.EDGE, ANOTHER, 2)
    assert new.description["description"] == "another"
    assert new.cap == allowance(3, "0.5")
    assert new.created_us > old.created_us
    assert other_process.find(old.name) == new
    assert world.ledger.cap(old.id).account.limit == allowance(3, "0.5")
    world.grant(world.publish(new), world.analyst(), loss(1))
    check_invariants(world.database)


def test_what_somebody_relies_on_stays(world: World) -> None:
    granted, published, named = (world.dataset(ready=False) for _ in range(3))
    # Even an allowance of ε = 0 lets the analyst see the description, so the owner can no longer
    # replace it.
    world.grant(granted, world.analyst(), loss(0))
    world.publish(published)
    world.datasets.set_nodes(named.name, [7, 8, 9, 10], max_degree=3, actor=world.owner)
    before = contents(world.database)
    for stored, reason in ((granted, "granted"), (published, "published"), (named, "names")):
        with pytest.raises(AlreadyExists, match=reason):
            replace(world, stored.name)
    with pytest.raises(NotFound):
        replace(world, "nothing")
    assert contents(world.database) == before
    world.versions.withdraw(published.name, actor=world.owner)
    assert replace(world, published.name).public != published.public


def test_a_refused_replacement_waits_for_no_charge(world: World) -> None:
    """On PostgreSQL a replacement locks the accounts, but not where it is refused anyway."""
    stored = world.dataset(ready=False)
    world.grant(stored, world.analyst(), loss(0))
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(world.database.engine, "before_cursor_execute", note)
    with pytest.raises(AlreadyExists):
        replace(world, stored.name)
    event.remove(world.database.engine, "before_cursor_execute", note)
    assert statements
    assert not [one for one in statements if one.startswith("LOCK TABLE")]


def test_no_upload_of_the_old_description_is_published(world: World) -> None:
    stored = world.dataset(ready=False)
    upload = world.versions.begin_upload(stored.name, actor=world.owner)
    with pytest.raises(UploadRunning):
        replace(world, stored.name)
    late_lease = update(tables.upload).values(lease_until=0)
    world.database.write(lambda connection: connection.execute(late_lease))
    replace(world, stored.name)
    staging = world.files.staging_folder(stored.id)
    staging.mkdir()
    with pytest.raises(NotFound):
        world.versions.publish(upload, staging, actor=world.owner)
    assert not world.versions.claim_upload(upload)
    late = {"actor": world.owner, "created_us": stored.created_us}
    with pytest.raises(DescriptionReplaced):
        world.versions.begin_upload(stored.name, **late)
    with pytest.raises(AlreadyExists):
        world.datasets.set_nodes(stored.name, [1, 2, 3, 4, 5], max_degree=2, **late)
    now = world.datasets.find(stored.name).created_us
    assert world.versions.begin_upload(stored.name, actor=world.owner, created_us=now)
