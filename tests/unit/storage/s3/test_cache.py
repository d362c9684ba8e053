"""The local cache of a store: what was used last stays, and what a query reads."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import GraphDomain
from storage.files.manifest import DamagedFolder, manifest_digest
from tests.support.store_replicas import Replica, register
from tests.support.world import World
from tests.unit.storage.records.test_open_records import without_digests


def cached(replica: Replica) -> int:
    """How many versions are on its disk."""
    return len(list((replica.files.root / "store" / "arrays").glob("*")))


def test_open_versions_stay_and_closed_ones_are_evicted(
    world: World, replicas: list[Replica]
) -> None:
    """No query evicts a version that another one may read."""
    one, two = replicas
    for value, name in enumerate("abc", start=1):
        register(world, one, name, GraphDomain(4, 3))
        one.publish(world, name, value)
    ids = {name: two.datasets.find(name).id for name in "abc"}
    first = two.records("a")
    two.store._limit = sum(path.stat().st_size for path in (two.files.root / "store").rglob("*.*"))
    two.records("b")
    two.records("c")
    assert [two.versions.opened.get(ids[name], 1) is None for name in "abc"] == [False] * 3
    assert two.records("a") is first
    assert cached(two) == 3
    for name in "ab":
        two.versions.opened.forget(ids[name], 1)
    two.store._make_room(0)
    # A query still reads the records of dataset a, so its files stay in the cache. Nothing reads
    # those of b any more, so they are removed.
    assert cached(two) == 2
    del first
    two.store._make_room(0)
    assert cached(two) == 1


def test_what_was_closed_counts_as_used_until_then(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    for value, name in enumerate("abc", start=1):
        register(world, one, name, GraphDomain(4, 3))
        one.publish(world, name, value)
    for name in "abc":
        two.records(name)
    for path in (two.files.root / "store" / "arrays").rglob("*"):
        os.utime(path, (1, 1))
    for name in "ba":
        two.versions.opened.forget(two.datasets.find(name).id, 1)
        time.sleep(0.01)
    limit = sum(path.stat().st_size for path in (two.files.root / "store").rglob("*.*"))
    two.store._limit = limit
    two.store._make_room(limit // 4)
    values = {
        int(np.load(path)[0]) for path in (two.files.root / "store" / "arrays").glob("*/0.npy")
    }
    assert values == {1, 3}


def test_a_damaged_copy_is_fetched_again(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one, "a", GraphDomain(4, 3))
    one.publish(world, "a", 1)
    two.records("a")
    two.versions.opened.forget(two.datasets.find("a").id, 1)
    copy = next((two.files.root / "store" / "arrays").glob("*/0.npy"))
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    with pytest.raises(DamagedFolder):
        two.records("a")
    assert two.records("a").indptr.tolist() == [1] * 5


def test_an_old_version_gets_its_digests_once_for_all(
    world: World, replicas: list[Replica]
) -> None:
    one, two = replicas
    register(world, one, "a", GraphDomain(4, 3))
    stored = one.datasets.find("a")
    staging = one.prepared("a", 1)
    without_digests(staging)
    upload = one.versions.begin_upload("a", actor=world.owner)
    one.versions.publish(upload, staging, actor=world.owner)
    digests = []
    for replica in (one, two):
        replica.records("a")
        (folder,) = (replica.files.root / "store" / "arrays").iterdir()
        digests.append(manifest_digest(folder))
        # This call changes nothing, because the version has digests already.
        replica.files.adopt(folder)
    assert digests[0] == digests[1]
    assert stored.version == 0


def test_a_version_of_which_a_part_is_gone_is_closed(world: World, replicas: list[Replica]) -> None:
    one, _ = replicas
    register(world, one)
    one.publish(world, "graph", 1)
    one.records("graph")
    key = (one.datasets.find("graph").id, 1)
    one.versions.opened.forget_removed()
    assert one.versions.opened.get(*key) is not None
    next((one.files.root / "store" / "arrays").rglob("manifest.json")).unlink()
    one.versions.opened.forget_removed()
    assert one.versions.opened.get(*key) is None
