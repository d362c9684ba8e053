"""Verification of files: arrays of versions and node lists, by the digests that rows state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from mechanisms.model.domains import GraphDomain, NeighbouringRelation
from storage.assurance.verify_arrays import ArraysVerified, verify_arrays
from storage.catalogue.datasets import StoredDataset
from storage.database import tables
from storage.files.arrays import write_arrays
from storage.files.folders import remove_folder
from storage.files.labels import write_labels
from storage.files.manifest import manifest_digest
from tests.support.world import World, allowance
from tests.unit.storage.records.test_open_records import without_digests

#: Only files are verified here, so the tests run with one kind of database.
pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
ARRAYS = {"indptr": np.zeros(5, np.int64), "indices": np.zeros(0, np.int64)}


def publish(world: World, dataset: StoredDataset, *, digests: bool = True) -> Path:
    upload = world.versions.begin_upload(dataset.name, actor=world.owner)
    staging = world.files.staging_folder(dataset.id)
    write_arrays(staging, "graph", ARRAYS)
    manifest = manifest_digest(staging)
    if not digests:
        without_digests(staging)
    version = world.versions.publish(
        upload, staging, actor=world.owner, manifest=manifest if digests else None
    )
    return world.files.version_folder(dataset.id, version)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def outcome(world: World) -> ArraysVerified:
    return verify_arrays(world.database, world.files)


def test_arrays_of_an_earlier_release_are_compared_once_they_have_digests(world: World) -> None:
    folder = publish(world, world.dataset(ready=False), digests=False)
    assert (outcome(world).versions, outcome(world).unknown) == (0, 1)
    (row,) = world.versions.needed()
    world.versions.open(row)
    assert (outcome(world).versions, outcome(world).unknown) == (1, 0)
    flip(folder / "0.npy")
    bad = outcome(world).first_bad
    assert bad is not None
    assert bad.row == "dataset 1, version 1"
    assert bad.reason.startswith("its prepared arrays cannot be used")


def test_a_version_that_is_being_removed_is_not_missing(world: World) -> None:
    """Its files go first, and its row follows in another transaction."""
    dataset = world.dataset(ready=False)
    old, new = publish(world, dataset), publish(world, dataset)
    remove_folder(old)
    with world.database.read() as connection:
        removed = connection.execute(select(tables.dataset_version.c.removed_us)).scalars().all()
    assert removed == [None, None]
    assert (outcome(world).versions, outcome(world).first_bad) == (1, None)
    remove_folder(new)
    assert outcome(world).first_bad is not None


def test_other_node_names_are_found(world: World) -> None:
    """Every answer would name other nodes, by the same numbers."""
    named = world.datasets.register(
        "named",
        owner=world.owner,
        description={"name": "named", "kind": "graph"},
        domain=GraphDomain(nodes=2, max_degree=1),
        neighbouring=NeighbouringRelation.EDGE,
        records_per_person=1,
        cap=allowance(1),
    )
    world.datasets.set_nodes("named", ["ada", "bob"], max_degree=None, actor=world.owner)
    folder = world.files.dataset_folder(named.id) / "nodes"
    assert outcome(world).first_bad is None
    remove_folder(folder)
    write_labels(folder, ["bob", "ada"])
    bad = outcome(world).first_bad
    assert str(bad) == "dataset: dataset 1: has another node list than the journal states"
    remove_folder(folder)
    bad = outcome(world).first_bad
    assert bad is not None
    assert bad.reason.startswith("its node list cannot be used")
