"""A transaction that dies between any two of its statements leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from storage.database import statements
from storage.database.database import Database
from storage.database.tables import metadata
from storage.ledger.ledger import Reservation
from tests.support.world import World, allowance, authenticate, check_invariants, contents, request

READS = ("SELECT", "BEGIN", "PRAGMA")


class Crash(Exception):
    """No code of the service catches it."""


class Failpoint:
    """Raises ``Crash`` right after the n-th writing statement of the block."""

    def __init__(self, database: Database, after: int) -> None:
        self._engine, self._remaining = database.engine, after
        self._execute = statements.executed
        self.reached = False

    def __call__(self, _connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        self._count(statement)

    def _executed(self, driver: Any, sql: str, arguments: Any = ()) -> Any:
        cursor = self._execute(driver, sql, arguments)
        try:
            self._count(sql)
        except Crash:
            cursor.close()  # A process that dies leaves no statement open.
            raise
        return cursor

    def _count(self, statement: str) -> None:
        if statement.startswith(READS):
            return
        self._remaining -= 1
        if self._remaining == 0:
            self.reached = True
            raise Crash

    def __enter__(self) -> Failpoint:
        event.listen(self._engine, "after_cursor_execute", self)
        statements.executed = self._executed
        return self

    def __exit__(self, *_exception: object) -> None:
        event.remove(self._engine, "after_cursor_execute", self)
        statements.executed = self._execute


def reserve(world: World, prepared: Any) -> object:
    dataset, analyst, _reservation, reserve_request = prepared
    return world.ledger.reserve(reserve_request or request(dataset, analyst, key="new"))


def take_over(world: World, prepared: Any) -> object:
    dataset, analyst, _reservation, _request = prepared
    return world.ledger.reserve(request(dataset, analyst, key="held"))


def settle(world: World, prepared: Any) -> object:
    return world.ledger.settle(prepared[2], status=201, body=b"x", release_us=0)


def release(world: World, prepared: Any) -> object:
    return world.ledger.release(prepared[2])


def raise_limit(world: World, prepared: Any) -> object:
    dataset, analyst, *_ = prepared
    return world.ledger.grant(dataset.id, analyst.id, allowance(2), actor_id=world.owner.id)


def open_account(world: World, prepared: Any) -> object:
    return world.ledger.grant(prepared[0].id, world.admin.id, allowance(2), actor_id=world.owner.id)


def withdraw(world: World, prepared: Any) -> object:
    world.versions.withdraw(prepared[0].name, actor=world.owner)
    return True


def register(world: World, _prepared: Any) -> object:
    return world.dataset(ready=False)


def create_user(world: World, _prepared: Any) -> object:
    return world.analyst()


def update_user(world: World, _prepared: Any) -> object:
    return world.users.update("olga", roles=["owner", "auditor"], actor=world.admin)


@pytest.mark.parametrize(
    "act, writes",
    [
        # PostgreSQL charges all accounts of a query by one statement, so it needs one write fewer.
        (reserve, {"sqlite": 6, "postgresql": 5}),
        (take_over, 3),
        (settle, 3),
        (release, 7),
        (raise_limit, 5),
        (open_account, 5),
        (withdraw, 6),
        (register, 7),
        (create_user, 7),
        (update_user, 5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_all_or_nothing(
    world: World, kind: str, act: Callable[..., object], writes: int | dict[str, int]
) -> None:
    writes = writes if isinstance(writes, int) else writes[kind]
    dataset, analyst = world.ready()
    reservation = world.ledger.reserve(request(dataset, analyst, key="held"))
    assert isinstance(reservation, Reservation)
    if act is take_over:
        world.lapse()
    prepared = (dataset, analyst, reservation, None)
    before = contents(world.database)
    for after in range(1, writes + 1):
        with Failpoint(world.database, after) as failpoint, pytest.raises(Crash):
            act(world, prepared)
        assert failpoint.reached
        assert contents(world.database) == before
        check_invariants(world.database)
    with Failpoint(world.database, writes + 1) as failpoint:
        assert act(world, prepared)
    assert not failpoint.reached, "there are more statements to crash between"
    assert contents(world.database) != before
    check_invariants(world.database)


def test_a_publication_that_dies_puts_its_folder_back(world: World) -> None:
    dataset = world.dataset(ready=False)
    upload = world.versions.begin_upload(dataset.name, actor=world.owner)
    staging = world.files.staging_folder(dataset.id)
    staging.mkdir()
    (staging / "array").write_bytes(b"prepared")
    before = contents(world.database)
    for after in range(1, 8):
        with Failpoint(world.database, after), pytest.raises(Crash):
            world.versions.publish(upload, staging, actor=world.owner)
        assert contents(world.database) == before
        assert (staging / "array").read_bytes() == b"prepared"
    with Failpoint(world.database, 8) as failpoint:
        assert world.versions.publish(upload, staging, actor=world.owner) == 1
    assert not failpoint.reached
    folder = world.files.version_folder(dataset.id, 1)
    assert (folder / "array").read_bytes() == b"prepared"
    assert not staging.exists()


def test_a_bootstrap_that_dies_can_be_repeated(url: str, tmp_path: Path) -> None:
    from storage.people.users import Users

    database = Database.open(url, tmp_path)
    users, key_file = Users(database), tmp_path / "bootstrap-admin.key"
    empty = contents(database)
    for after in range(1, 5):
        with Failpoint(database, after), pytest.raises(Crash):
            users.bootstrap(key_file)
        assert contents(database) == empty
    assert users.bootstrap(key_file)
    assert authenticate(users, key_file.read_text()) is not None
    assert {path.name for path in tmp_path.glob("*admin*")} == {"bootstrap-admin.key"}
    database.close()


def test_the_tables_are_all_compared() -> None:
    assert len(metadata.sorted_tables) == 17
