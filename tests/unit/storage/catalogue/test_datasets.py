"""Datasets: descriptions fixed for ever, versions given at publication, who sees what."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from accounting.account import AccountRank
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    TableDomain,
)
from storage.catalogue import versions
from storage.catalogue.datasets import Datasets, StoredDataset
from storage.database import tables
from storage.errors import AlreadyExists, InvalidRecords, NoRecords, NotFound, UploadRunning
from storage.ledger.ledger import Reservation
from tests.support.effort import instructions
from tests.support.world import World, allowance, check_invariants, contents, loss, request

TABLE = TableDomain((CategoricalAttribute("sex", ("Female", "Male")),))
PERSONS = replace(TABLE, max_rows=9, person="id")


def register(world: World, name: str = "d", **changes: Any) -> StoredDataset:
    fields = {
        "owner": world.owner,
        "description": {"name": name, "note": "ünï → 名", "values": [1, 2.5, None]},
        "domain": GraphDomain(3, 2),
        "neighbouring": NeighbouringRelation.EDGE,
        "records_per_person": 1,
        "cap": allowance(2, "0.1"),
    }
    return world.datasets.register(name, **{**fields, **changes})


class TestRegistering:
    def test_what_is_registered_comes_back(self, world: World) -> None:
        stored = register(world, records_per_person=3)
        assert stored == world.datasets.find("d")
        assert stored.public == Dataset("d", NeighbouringRelation.EDGE, GraphDomain(3, 2), 3)
        assert stored.description == {
            "name": "d",
            "note": "ünï → 名",
            "values": [1, 2.5, None],
        }
        assert list(stored.description) == ["name", "note", "values"]
        assert (stored.version, stored.status, stored.upload) == (0, "empty", None)
        assert (stored.owner, stored.cap) == ("olga", allowance(2, "0.1"))
        assert world.ledger.cap(stored.id).account.limit == allowance(2, "0.1")
        check_invariants(world.database)

    def test_names_are_never_reused(self, world: World) -> None:
        register(world)
        before = contents(world.database)
        with pytest.raises(AlreadyExists):
            register(world)
        assert contents(world.database) == before

    def test_a_description_cannot_be_changed_through_what_was_read(self, world: World) -> None:
        register(world).description["name"] = "another"
        current = world.datasets.find("d")
        assert current.description["name"] == "d"

    @pytest.mark.parametrize("labels", [["ada", "bob", "名"], [5, -1, 2**40]])
    def test_labels_come_back_in_their_type(self, world: World, labels: list[Any]) -> None:
        register(world, "apart", domain=GraphDomain(3, 2), labels=labels)
        register(world, domain=GraphDomain(3, 2, labels))
        apart = world.datasets.find("apart")
        assert [apart.public.domain.label(i) for i in range(3)] == labels  # type: ignore[union-attr]
        fresh = Datasets(world.database, world.files).find("d")
        assert fresh.public is not None
        assert isinstance(fresh.public.domain, GraphDomain)
        assert [fresh.public.domain.label(i) for i in range(3)] == labels

    def test_repeated_labels_register_nothing(self, world: World) -> None:
        before = contents(world.database)
        with pytest.raises(ValueError):
            register(world, domain=GraphDomain(3, 2, ["ada", "bob", "ada"]))
        assert contents(world.database) == before

    def test_what_is_absent(self, world: World) -> None:
        for call in (
            lambda: world.datasets.find("nothing"),
            lambda: world.versions.begin_upload("nothing", actor=world.owner),
            lambda: world.versions.withdraw("nothing", actor=world.owner),
            lambda: world.datasets.set_nodes("nothing", [1], max_degree=None, actor=world.owner),
            lambda: world.ledger.cap(77),
        ):
            with pytest.raises(NotFound):
                call()


class TestNodes:
    def test_a_node_list_completes_the_graph_once(self, world: World) -> None:
        assert register(world, domain=None).public is None
        stored = world.datasets.set_nodes("d", ["x", "y"], max_degree=None, actor=world.owner)
        assert stored.public is not None
        assert stored.public.domain == GraphDomain(2, 1)
        assert [stored.public.domain.label(i) for i in range(2)] == ["x", "y"]  # type: ignore[union-attr]
        with pytest.raises(AlreadyExists):
            world.datasets.set_nodes("d", ["p", "q"], max_degree=1, actor=world.owner)
        assert list(world.files.labels(stored.id)) == ["x", "y"]

    @pytest.mark.parametrize("labels, degree", [(["x"], 1), (["x", "x"], 1), ([], None)])
    def test_a_wrong_list_changes_nothing(
        self, world: World, labels: list[str], degree: int | None
    ) -> None:
        register(world, domain=None)
        before = contents(world.database)
        with pytest.raises(ValueError):
            world.datasets.set_nodes("d", labels, max_degree=degree, actor=world.owner)
        assert contents(world.database) == before
        again = world.datasets.set_nodes("d", ["a", "b"], max_degree=1, actor=world.owner)
        assert again.public is not None

    def test_one_of_two_lists_wins_whole(self, world: World) -> None:
        stored = register(world, domain=None)
        lists = [[f"{who}{i}" for i in range(5)] for who in "ab"]

        def send(labels: list[str]) -> bool:
            try:
                world.datasets.set_nodes("d", labels, max_degree=None, actor=world.owner)
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            won = list(threads.map(send, lists))
        assert sorted(won) == [False, True]
        assert list(world.files.labels(stored.id)) == lists[won.index(True)]


class TestVersions:
    def test_versions_are_counted_at_publication(self, world: World) -> None:
        stored = register(world)
        refused = world.versions.begin_upload("d", actor=world.owner)
        world.versions.refuse_upload(refused, {"errors": []})
        assert [world.publish(stored).version for _ in range(3)] == [1, 2, 3]
        world.versions.withdraw("d", actor=world.owner)
        gone = world.datasets.find("d")
        assert (gone.version, gone.status) == (0, "empty")
        with pytest.raises(NoRecords):
            world.versions.withdraw("d", actor=world.owner)
        assert world.publish(stored).version == 4

    def test_one_upload_at_a_time(self, world: World) -> None:
        stored = register(world)
        first = world.versions.begin_upload("d", actor=world.owner)
        with pytest.raises(UploadRunning):
            world.versions.begin_upload("d", actor=world.owner)
        register(world, "other")
        world.versions.begin_upload("other", actor=world.owner)
        staging = world.files.staging_folder(stored.id)
        staging.mkdir()
        assert world.versions.publish(first, staging, actor=world.owner) == 1
        assert world.versions.begin_upload("d", actor=world.owner) != first

    def test_an_upload_ends_once(self, world: World, tmp_path: Path) -> None:
        register(world)
        upload = world.versions.begin_upload("d", actor=world.owner)
        world.versions.refuse_upload(upload, {"errors": ["first"]})
        world.versions.refuse_upload(upload, {"errors": ["second"]})
        world.versions.keep_upload(upload, {"done": 1})
        with pytest.raises(NotFound):
            world.versions.publish(upload, tmp_path, actor=world.owner)
        current = world.datasets.find("d")
        assert current.upload is not None
        assert (current.upload.status, current.upload.detail) == ("refused", {"errors": ["first"]})
        assert current.version == 0

    def test_the_owner_sees_progress(self, world: World) -> None:
        register(world)
        upload = world.versions.begin_upload("d", actor=world.owner)
        world.versions.keep_upload(upload, {"prepared": 0.5})
        world.versions.keep_upload(upload)
        current = world.datasets.find("d")
        assert current.upload is not None
        assert (current.upload.status, current.upload.detail) == ("preparing", {"prepared": 0.5})

    def test_a_withdrawal_stops_what_is_being_prepared(self, world: World, tmp_path: Path) -> None:
        dataset = world.dataset()
        upload = world.versions.begin_upload(dataset.name, actor=world.owner)
        world.versions.withdraw(dataset.name, actor=world.owner)
        with pytest.raises(NotFound):
            world.versions.publish(upload, tmp_path, actor=world.owner)
        current = world.datasets.find(dataset.name)
        assert current.upload is not None
        assert (current.version, current.upload.status) == (0, "refused")
        assert current.upload.detail == versions.WITHDRAWN
        world.versions.begin_upload(dataset.name, actor=world.owner)
        # Ends an upload that is under way. No records are stored, so the next withdrawal is
        # refused.
        world.versions.withdraw(dataset.name, actor=world.owner)
        with pytest.raises(NoRecords):
            world.versions.withdraw(dataset.name, actor=world.owner)

    def test_versions_of_persons_share_a_key_until_their_records_are_withdrawn(
        self, world: World
    ) -> None:
        stored = register(world, domain=PERSONS, neighbouring=NeighbouringRelation.ADD_REMOVE)
        other = register(world, "e", domain=PERSONS, neighbouring=NeighbouringRelation.ADD_REMOVE)
        key = world.versions.person_key(stored.id)
        assert (len(key), world.versions.person_key(stored.id)) == (32, key)
        world.publish(stored)
        assert world.versions.person_key(stored.id) == key
        assert world.versions.person_key(other.id) != key
        assert key.hex() not in repr(world.datasets.find("d"))
        assert repr(key) not in repr(world.datasets.find("d"))
        world.versions.withdraw("d", actor=world.owner)
        stored_keys = select(tables.dataset.c.person_key).where(tables.dataset.c.id == stored.id)
        with world.database.read() as connection:
            assert connection.execute(stored_keys).scalar_one() is None
        assert world.versions.person_key(stored.id) != key
        check_invariants(world.database)

    def test_a_dead_preparation_does_not_last(self, world: World) -> None:
        stored = world.dataset()
        world.versions.begin_upload(stored.name, actor=world.owner)
        died = update(tables.upload).where(tables.upload.c.state == 0).values(lease_until=0)
        world.database.write(lambda connection: connection.execute(died))
        current = world.datasets.find(stored.name)
        assert current.upload is not None
        assert (current.upload.status, current.upload.detail) == ("refused", versions.INTERRUPTED)
        assert (current.version, current.status) == (1, "ready")
        assert world.publish(stored).version == 2

    def test_a_slow_preparation_may_still_publish(self, world: World) -> None:
        stored = register(world)
        upload = world.versions.begin_upload("d", actor=world.owner)
        late = update(tables.upload).values(lease_until=0)
        world.database.write(lambda connection: connection.execute(late))
        staging = world.files.staging_folder(stored.id)
        staging.mkdir()
        assert world.versions.publish(upload, staging, actor=world.owner) == 1

    def test_arrays_stay_while_an_open_query_names_them(self, world: World) -> None:
        dataset, analyst = world.ready()
        reservation = world.ledger.reserve(request(dataset, analyst))
        assert isinstance(reservation, Reservation)
        world.publish(dataset)
        folder = world.files.version_folder(dataset.id, 1)
        assert world.versions.remove_unused(dataset.name) == []
        assert folder.is_dir()
        world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
        assert world.versions.remove_unused() == [1]
        assert not folder.exists()
        assert world.files.version_folder(dataset.id, 2).is_dir()
        assert world.versions.remove_unused(dataset.name) == []
        world.versions.withdraw(dataset.name, actor=world.owner)
        assert world.versions.remove_unused(dataset.name) == [2]

    @pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
    def test_what_is_needed_is_found_without_the_queries_that_have_ended(
        self, world: World
    ) -> None:
        """It is read every few seconds, while one query keeps an old version needed."""
        efforts = []
        for ended in (1, 40):
            dataset, analyst = world.ready(loss(20))
            for _ in range(ended):
                reservation = world.ledger.reserve(request(dataset, analyst))
                assert isinstance(reservation, Reservation)
                world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
            world.ledger.reserve(request(dataset, analyst))
            world.publish(dataset)
            needed = partial(world.versions.needed, dataset.id)
            assert [row.version for row in needed()] == [1, 2]
            efforts.append(instructions(world.database, needed))
        assert efforts[1] < efforts[0] + 100

    def test_a_new_version_keeps_every_account(self, world: World) -> None:
        dataset, analyst = world.ready()
        world.ledger.reserve(request(dataset, analyst, loss("0.4")))
        world.publish(dataset)
        assert world.charged(dataset, analyst) == (loss("0.4"), loss("0.4"))


class TestRows:
    """The rows of a `replace` table are public for ever from the first accepted upload on."""

    def table(self, world: World, rows: int | None = None) -> StoredDataset:
        return register(
            world,
            domain=TableDomain(TABLE.attributes, rows=rows),
            neighbouring=NeighbouringRelation.REPLACE,
        )

    def rows_of(self, stored: StoredDataset) -> int | None:
        assert stored.public is not None
        assert isinstance(stored.public.domain, TableDomain)
        return stored.public.domain.rows

    def test_the_first_upload_fixes_them(self, world: World) -> None:
        stored = self.table(world)
        assert self.rows_of(stored) is None
        assert "rows" not in stored.description
        first = world.publish(stored, rows=5)
        assert self.rows_of(first) == first.description["rows"] == 5
        with pytest.raises(InvalidRecords, match="public description") as refusal:
            world.publish(stored, rows=6)
        assert refusal.value.errors == [
            (("rows",), "row_count", "the table must have exactly 5 rows")
        ]
        current = world.datasets.find("d")
        assert (current.version, self.rows_of(current)) == (1, 5)

    def test_registered_rows_bind_the_first_upload(self, world: World) -> None:
        stored = self.table(world, rows=3)
        assert self.rows_of(stored) == 3
        with pytest.raises(InvalidRecords):
            world.publish(stored, rows=4)
        current = world.datasets.find("d")
        assert current.upload is not None
        world.versions.refuse_upload(current.upload.id, {})
        assert self.rows_of(world.publish(stored, rows=3)) == 3

    def test_a_withdrawal_does_not_free_them(self, world: World) -> None:
        stored = self.table(world)
        world.publish(stored, rows=5)
        world.versions.withdraw("d", actor=world.owner)
        with pytest.raises(InvalidRecords):
            world.publish(stored, rows=6)

    def test_rows_of_other_tables_are_private(self, world: World) -> None:
        stored = register(
            world,
            domain=TableDomain(TABLE.attributes, max_rows=9),
            neighbouring=NeighbouringRelation.ADD_REMOVE,
        )
        with pytest.raises(ValueError):
            world.publish(stored, rows=5)
        replaced = register(world, "r", domain=TABLE, neighbouring=NeighbouringRelation.REPLACE)
        with pytest.raises(ValueError):
            world.publish(replaced)
        with world.database.read() as connection:
            fixed = connection.execute(select(tables.dataset.c.fixed_rows)).scalars()
            assert list(fixed) == [None, None]


class TestVisibility:
    def test_everyone_sees_what_is_theirs(self, world: World) -> None:
        users, admin = world.users, world.admin
        mine, _ = users.create("otto", ["owner"], actor=admin)
        both, _ = users.create("bea", ["owner", "analyst"], actor=admin)
        auditor, _ = users.create("aud", ["auditor"], actor=admin)
        nobody, _ = users.create("nix", [], actor=admin)
        demoted = users.update("olga", roles=["analyst"], actor=admin)
        analyst = world.analyst()
        first, second = register(world, "first", owner=mine), register(world, "second", owner=both)
        third = register(world, "third")
        world.grant(first, analyst, loss(1))
        world.grant(first, both, loss(1))
        expected = {
            mine: {"first"},
            both: {"first", "second"},
            auditor: {"first", "second", "third"},
            admin: {"first", "second", "third"},
            analyst: {"first"},
            demoted: set(),
            nobody: set(),
        }
        for user, names in expected.items():
            assert {stored.name for stored in world.datasets.page(user, 10).items} == names
            for stored in (first, second, third):
                seen = world.datasets.visible_to(stored, user)
                assert seen == (stored.name in names), (user.name, stored.name)

    def test_pages_are_newest_first(self, world: World) -> None:
        for i in range(5):
            register(world, f"d{i}")
        first = world.datasets.page(world.owner, 2)
        register(world, "late")
        second = world.datasets.page(world.owner, 2, first.next)
        third = world.datasets.page(world.owner, 2, second.next)
        names = [stored.name for page in (first, second, third) for stored in page.items]
        assert names == ["d4", "d3", "d2", "d1", "d0"]
        assert third.next is None


def test_the_cap_account_belongs_to_nobody(world: World) -> None:
    cap = world.ledger.cap(register(world).id)
    assert (cap.analyst, cap.dataset) == (None, "d")
    with world.database.read() as connection:
        (row,) = connection.execute(select(tables.budget_account))
    assert (row.id, row.rank, row.analyst_id) == (cap.id, AccountRank.DATASET, 0)
