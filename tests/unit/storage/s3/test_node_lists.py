"""Node lists in a store: fetched by their first use, and removed if no graph gets the names."""

from __future__ import annotations

import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from mechanisms.model.domains import GraphDomain
from storage.errors import AlreadyExists, StoreFailed
from tests.support.store_replicas import Replica, fails, register
from tests.support.world import World


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
        assert stored.public is not None
        assert stored.public.domain == GraphDomain(4, 3)
        assert stored.names is not None
        assert len(stored.names) == 4
        assert not stored.names.at_hand
        with pytest.raises(StoreFailed):
            stored.public.domain.label(0)  # type: ignore[union-attr]
    requests: list[str] = []
    monkeypatch.setattr(
        two.store._store, "get", lambda name, path: (requests.append(name), get(name, path))
    )
    assert two.names() == two.names() == ["a", "b", "c", "d"]
    dataset = two.datasets.find("graph")
    assert dataset.names is not None
    assert dataset.names.at_hand
    assert len(requests) == len(set(requests)) == 3


def test_a_list_that_is_lost_is_the_stores_failure(world: World, replicas: list[Replica]) -> None:
    one, two = replicas
    register(world, one)
    for name in one.store.names("nodes"):
        one.store.remove(name)
    with pytest.raises(StoreFailed):
        two.names()
