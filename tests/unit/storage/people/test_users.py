"""People and keys: a secret is shown once, one admin is created, one always remains."""

from __future__ import annotations

import re
import stat
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from sqlalchemy import select, update

from storage.database import tables
from storage.database.database import Database
from storage.errors import AlreadyExists, Conflict, InvalidCursor, NotFound
from storage.journal.audit import page_of_lines
from storage.people.keys import new_key, parse_key
from storage.people.users import User, Users
from tests.support.workers import bootstrap
from tests.support.world import World, authenticate, contents


class TestBootstrap:
    def test_one_admin_however_many_processes_start(self, empty_url: str, tmp_path: Path) -> None:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            created = list(pool.map(bootstrap, [empty_url] * 2, [str(tmp_path)] * 2))
        assert sorted(created) == [False, True]
        self.check(empty_url, tmp_path)

    def test_one_admin_however_many_threads_start(self, url: str, tmp_path: Path) -> None:
        databases = [Database.open(url, tmp_path) for _ in range(4)]
        with ThreadPoolExecutor(8) as threads:
            created = list(
                threads.map(
                    lambda i: Users(databases[i % 4]).bootstrap(tmp_path / "bootstrap-admin.key"),
                    range(8),
                )
            )
        assert sum(created) == 1
        for database in databases:
            database.close()
        self.check(url, tmp_path)

    def check(self, url: str, folder: Path) -> None:
        file = folder / "bootstrap-admin.key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        key = file.read_text()
        assert re.fullmatch(r"pp_[0-9a-f]{16}_[0-9a-f]{64}", key)
        database = Database.open(url, folder)
        users = Users(database)
        admin = authenticate(users, key)
        assert admin is not None
        assert (admin.name, admin.roles) == ("admin", {"admin"})
        assert users.page(10).items == [admin]
        assert not users.bootstrap(file)
        assert file.read_text() == key
        database.close()


class TestKeys:
    def test_only_the_hash_is_stored(self, world: World) -> None:
        user, issued = world.users.create("ada", ["analyst"], actor=world.admin)
        _, _, secret = issued.key.split("_")
        assert issued.key not in repr(issued)
        stored = repr(contents(world.database))
        assert secret not in stored
        assert authenticate(world.users, issued.key) == user

    @pytest.mark.parametrize(
        "damage",
        [
            lambda key: key[:-1] + ("0" if key[-1] != "0" else "1"),
            lambda key: key[:-1],
            lambda key: key + "0",
            lambda key: key + "\n",
            lambda key: key.upper(),
            lambda key: key.replace("pp_", "pq_"),
            lambda key: "pp_0000000000000000" + key[19:],
            lambda _key: "",
            lambda _key: "pp__",
            lambda _key: "pp_\ud800_x",
        ],
    )
    def test_another_key_opens_nothing(self, world: World, damage: object) -> None:
        _, issued = world.users.create("ada", ["analyst"], actor=world.admin)
        assert authenticate(world.users, damage(issued.key)) is None  # type: ignore[operator]

    def test_revoked_and_disabled_open_nothing(self, world: World) -> None:
        users = world.users
        _, first = users.create("ada", ["analyst"], actor=world.admin)
        second = users.issue_key("ada", actor=world.admin)
        users.revoke(first.key_id, actor=world.admin)
        users.revoke(first.key_id, actor=world.admin)
        assert authenticate(users, first.key) is None
        assert authenticate(users, second.key) is not None
        users.update("ada", disabled=True, actor=world.admin)
        assert authenticate(users, second.key) is None
        users.update("ada", disabled=False, actor=world.admin)
        assert authenticate(users, second.key) is not None
        keys = {key.key_id: key for key in users.keys("ada")}
        assert keys[first.key_id].revoked
        assert not keys[second.key_id].revoked
        assert keys[first.key_id].last_used_us is None
        assert keys[second.key_id].last_used_us is not None
        assert users.owner_of_key(first.key_id) == "ada"
        assert users.owner_of_key("0" * 16) is None

    def test_the_last_use_is_written_once_a_minute(self, world: World) -> None:
        _, issued = world.users.create("ada", ["analyst"], actor=world.admin)
        authenticate(world.users, issued.key)
        first = world.users.keys("ada")[0].last_used_us
        authenticate(world.users, issued.key)
        assert world.users.keys("ada")[0].last_used_us == first
        assert first is not None
        old = update(tables.api_key).values(last_used_us=first - 61_000_000)
        world.database.write(lambda connection: connection.execute(old))
        authenticate(world.users, issued.key)
        again = world.users.keys("ada")[0].last_used_us
        assert again is not None
        assert again >= first

    def test_what_is_not_there(self, world: World) -> None:
        for call in (
            lambda: world.users.issue_key("nobody", actor=world.admin),
            lambda: world.users.keys("nobody"),
            lambda: world.users.revoke("0" * 16, actor=world.admin),
            lambda: world.users.update("nobody", disabled=True, actor=world.admin),
        ):
            with pytest.raises(NotFound):
                call()
        assert world.users.find("nobody") is None

    def test_keys_are_random(self) -> None:
        issued = [new_key()[0] for _ in range(100)]
        assert len({key.key for key in issued}) == len({key.key_id for key in issued}) == 100
        for key in issued:
            parsed = parse_key(key.key)
            assert parsed is not None
            assert parsed[0] == key.key_id


class TestUsers:
    def test_names_are_never_reused(self, world: World) -> None:
        world.users.create("ada", ["analyst"], actor=world.admin)
        world.users.update("ada", disabled=True, actor=world.admin)
        before = contents(world.database)
        with pytest.raises(AlreadyExists):
            world.users.create("ada", ["owner"], actor=world.admin)
        assert contents(world.database) == before

    @pytest.mark.parametrize("name", ["Robert'); DROP TABLE users;--", "ünï → 名", "%_", " "])
    def test_names_are_data(self, world: World, name: str) -> None:
        user, issued = world.users.create(name, ["analyst"], actor=world.admin)
        assert world.users.find(name) == user == authenticate(world.users, issued.key)

    def test_roles_are_replaced(self, world: World) -> None:
        world.users.create("ada", ["analyst"], actor=world.admin)
        changed = world.users.update("ada", roles=["owner", "auditor"], actor=world.admin)
        assert changed.roles == {"owner", "auditor"}
        assert world.users.find("ada") == changed
        assert world.users.update("ada", roles=[], actor=world.admin).roles == frozenset()

    @pytest.mark.parametrize("change", [{"disabled": True}, {"roles": ["owner"]}, {"roles": []}])
    def test_an_enabled_admin_always_remains(self, world: World, change: dict[str, object]) -> None:
        before = contents(world.database)
        with pytest.raises(Conflict):
            world.users.update("admin", actor=world.admin, **change)  # type: ignore[arg-type]
        assert contents(world.database) == before
        world.users.create("second", ["admin"], actor=world.admin)
        world.users.update("admin", actor=world.admin, **change)  # type: ignore[arg-type]

    def test_two_admins_cannot_disable_each_other(self, world: World) -> None:
        world.users.create("second", ["admin"], actor=world.admin)

        def disable(name: str) -> bool:
            try:
                world.users.update(name, disabled=True, actor=world.admin)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(disable, ["admin", "second"])) == [False, True]

    def test_pages_are_newest_first_and_stable(self, world: World) -> None:
        for i in range(5):
            world.users.create(f"user{i}", ["analyst"], actor=world.admin)
        first = world.users.page(3)
        world.users.create("late", ["analyst"], actor=world.admin)
        second = world.users.page(3, first.next)
        third = world.users.page(3, second.next)
        names = [user.name for page in (first, second, third) for user in page.items]
        assert names == ["user4", "user3", "user2", "user1", "user0", "olga", "admin"]
        assert third.next is None

    @pytest.mark.parametrize("cursor", ["", "x", "W10", "WyJ4Il0", "é", "WzFlOTldCg", "WzEsMl0"])
    def test_invented_cursors_are_refused(self, world: World, cursor: str) -> None:
        with pytest.raises(InvalidCursor):
            world.users.page(3, cursor)


def test_everything_administrative_is_audited(world: World) -> None:
    users, admin = world.users, world.admin
    _, issued = users.create("ada", ["analyst"], actor=admin)
    users.update("ada", roles=["owner"], disabled=True, actor=admin)
    extra = users.issue_key("ada", actor=admin)
    users.revoke(extra.key_id, actor=admin)
    lines = page_of_lines(world.database, 100).items[::-1]
    actions = [(line.action, line.subject) for line in lines]
    assert actions == [
        ("user.bootstrap", "admin"),
        ("user.create", "olga"),
        ("user.create", "ada"),
        ("user.update", "ada"),
        ("key.issue", "ada"),
        ("key.revoke", extra.key_id),
    ]
    assert {line.actor for line in lines} == {admin.name}
    secrets = [issued.key.split("_")[2], extra.key.split("_")[2]]
    with world.database.read() as connection:
        facts = connection.execute(select(tables.journal.c.fact)).scalars().all()
    assert not any(secret in fact for fact in facts for secret in secrets)


def test_a_user_is_a_value() -> None:
    user = User(1, "ada", frozenset({"analyst"}), False, 5)
    assert replace(user, disabled=True) != user
