"""The local cache of a store: what was used last stays, and what a query reads."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import GraphDomain
from storage.records import open_records
from tests.support.store_replicas import Replica, register
from tests.support.world import World


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
    ids = {name: two.datasets.find(name).id for name in "abc"}
    two.records("c")
    # b was opened after a, and a was used after b.
    assert [two.datasets.opened.has(ids[name], 1) for name in "abc"] == [True, False, True]
    assert cached(two) == 2
    # What a query reads stays open, and on the disk, whoever comes.
    reading = [two.records("a"), two.records("c")]
    assert two.records("b").indptr.tolist() == [2] * 5
    assert two.records("a") is reading[0]
    assert two.records("c") is reading[1]
    assert cached(two) == 3
    del reading
    two.store._make_room(0)
    assert [two.datasets.opened.has(ids[name], 1) for name in "abc"] == [True, False, True]


def test_what_was_closed_counts_as_used_until_then(
    world: World, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replicas
    for value, name in enumerate("abc", start=1):
        register(world, one, name, GraphDomain(4, 3))
        one.publish(world, name, value)
    monkeypatch.setattr(open_records, "MOST", 1)
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
    one.datasets.opened.forget_gone()
    assert one.datasets.opened._open
    next((one.files.root / "store" / "arrays").rglob("manifest.json")).unlink()
    one.datasets.opened.forget_gone()
    assert not one.datasets.opened._open
