"""Somebody with write access to the database changes rows: a whole verification finds it.

The tamperer switches triggers and constraints off. What they cannot write is ``heads.log``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, create_engine, delete, insert
from sqlalchemy.exc import DBAPIError

from storage.assurance.verification import verify
from storage.database import tables
from storage.database.database import Database
from storage.ledger.budget_requests import BudgetRequests, Decision
from storage.ledger.limits import End
from storage.people.identities import Identities
from storage.people.keys import Restrictions
from tests.evidence.adversary.tampering_table import FOUND, TABLE, is_bound, why_not
from tests.support.ledgers import busy_ledger
from tests.support.tampering import other_value, rows_of, set_field, tampering
from tests.support.world import World, allowance, loss, request
from tests.unit.storage.database.test_upgrades import first_schema

ALL = tables.metadata.sorted_tables
#: PostgreSQL is tested under --slow only, because verification uses the same statements on both
#: databases.
BOTH = pytest.mark.parametrize(
    "kind",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])],
    indirect=True,
)
Run = Callable[[Any], None]


def test_every_column_of_every_table_has_an_expectation() -> None:
    assert {table.name: set(table.c.keys()) for table in ALL} == {
        name: set(columns) for name, columns in TABLE.items()
    }


@dataclass(frozen=True)
class Target:
    """A database with rows in as many tables as possible, and a run of statements on it."""

    database: Database
    run: Run

    def rows(self, table: Table) -> list[Any]:
        with self.database.read() as connection:
            return rows_of(connection, table)

    @property
    def is_valid(self) -> bool:
        return verify(self.database).valid

    def refuses(self, statement: Any) -> bool:
        """True if the database itself does not take the change."""
        try:
            self.run(statement)
        except DBAPIError:
            return True
        return False


def fill(world: World) -> None:
    """Rows of every kind that a service writes."""
    analyst, *_ = busy_ledger(world, 24)
    world.ledger.grant(None, analyst.id, allowance(10**5, "0.9"), actor_id=world.admin.id)
    Identities(world.database).admit("https://issuer", "someone", frozenset({"analyst"}), 7)
    world.users.issue_key(analyst.name, actor=world.admin)
    limited_key = world.limited_key(analyst, loss(1))
    dataset = world.datasets.find("dataset4")
    restrictions = Restrictions(datasets=frozenset({dataset.id}), until_us=world.now() + 10**9)
    world.users.issue_key(analyst.name, actor=analyst, restrictions=restrictions)
    world.ledger.reserve(request(dataset, analyst, limited_key=limited_key))
    world.publish(dataset)
    for _ in range(2):
        world.ledger.reserve(request(dataset, analyst))
    world.publish(dataset)
    world.versions.withdraw(dataset.name, actor=world.owner)
    requests, until_us = BudgetRequests(world.database), world.now() + 10**12
    analyst = world.analyst()
    for number in range(3):
        id = UUID(int=number + 1)
        requests.make(id, dataset.id, analyst.id, loss(50), until_us, "a report")
        if number == 0:
            requests.refuse(id, world.owner.id, Decision("too much"))
            requests.erase(id, world.owner.id)
        elif number == 1:
            agreed = partial(
                requests.decide,
                id=id,
                actor_id=world.owner.id,
                decision=Decision("agreed", loss(60), until_us),
            )
            world.ledger.grant(
                dataset.id,
                analyst.id,
                allowance(60),
                actor_id=world.owner.id,
                end=End(until_us),
                then=lambda connection, _, agreed=agreed: agreed(connection),
            )


@pytest.fixture
def target(world: World) -> Any:
    fill(world)
    with tampering(world.database.engine.url.render_as_string(hide_password=False)) as run:
        target = Target(world.database, run)
        assert target.is_valid
        yield target


@pytest.fixture
def upgraded(empty_url: str, tmp_path: Path) -> Any:
    """A ledger of the first schema with settlements and audit lines, brought up to date."""
    engine = create_engine(empty_url)
    first_schema(engine)
    engine.dispose()
    database = Database.open(empty_url, tmp_path)
    try:
        with tampering(empty_url) as run:
            target = Target(database, run)
            assert target.is_valid
            yield target
    finally:
        database.close()


def sample(rows: list[Any], table: Table, each: int | None) -> list[Any]:
    """The first row, the last, and ``each`` others; of queries one of every state; or all rows."""
    if each is None:
        return rows
    rng = random.Random(table.name)
    chosen = {0, len(rows) - 1, *rng.sample(range(len(rows)), min(each, len(rows)))}
    own = {tables.api_key: "limited", tables.query: "limited_key", tables.budget_account: "key_id"}
    # Some rows belong to an API key that has a limit of its own: the key, its account and the
    # queries that are charged to it. The sample has all of them.
    if table in own:
        chosen |= {number for number, row in enumerate(rows) if getattr(row, own[table])}
    if table is tables.query:
        chosen |= {[row.state for row in rows].index(row.state) for row in rows}
    if table is tables.journal:
        chosen |= {[row.kind for row in rows].index(row.kind) for row in rows}
    return [rows[index] for index in sorted(chosen)]


def others(table: Table, column: Any, value: Any) -> list[Any]:
    if table is tables.query and column.name == "state":
        return [state for state in range(4) if state != value]
    if table is tables.user_role and column.name == "role":
        return [role for role in ("admin", "owner", "analyst", "auditor") if role != value][:1]
    # Further wrong values are a number beyond all rows, and NULL. Verification must name the row
    # and must not crash.
    beyond = [2**40] if column.name in ("revision", "attempt") else []
    has_none = column.nullable and value is not None and column.name != "salt"
    missing = [None] if has_none else []
    return [other_value(column, value), *beyond, *missing]


def change_fields(target: Target, each: int | None) -> dict[str, int]:
    """Change every field of some rows and put it back. Returns how many were tried, by table."""
    tried, wrong = dict.fromkeys(TABLE, 0), []
    for table in ALL:
        for row in sample(target.rows(table), table, each) if target.rows(table) else ():
            for column in table.c:
                before = getattr(row, column.name)
                for value in others(table, column, before):
                    if target.refuses(set_field(table, row, column, value)):
                        continue
                    tried[table.name] += 1
                    if target.is_valid == (why_not(table.name, column.name, row) == FOUND):
                        wrong.append((table.name, column.name, before, value))
                    key = {c.name: getattr(row, c.name) for c in table.primary_key}
                    key |= {column.name: value} if column.name in key else {}
                    target.run(set_field(table, row, column, before, key))
    assert wrong == []
    assert target.is_valid
    return tried


@BOTH
def test_a_changed_field_is_found(target: Target) -> None:
    tried = change_fields(target, 0)
    assert {name for name, times in tried.items() if not times} == {
        *("web_session", "refusal", "settlement", "audit")
    }


@BOTH
def test_a_changed_field_from_before_the_journal_is_found(upgraded: Target) -> None:
    tried = change_fields(upgraded, 0)
    assert tried["settlement"] >= 5
    assert tried["audit"] >= 6


@pytest.mark.slow
def test_a_changed_field_of_any_row_is_found(target: Target) -> None:
    change_fields(target, None)


@pytest.mark.slow
def test_a_changed_field_of_any_row_from_before_the_journal_is_found(upgraded: Target) -> None:
    change_fields(upgraded, None)


def fresh(table: Table, row: Any) -> dict[str, Any]:
    """A copy of the row under a key of its own."""
    values = row._asdict()
    for column in table.primary_key:
        values[column.name] = {int: 1_000_003, str: "forged", UUID: uuid4()}.get(
            type(values[column.name]), bytes(32)
        )
    unique = {"name": "forged", "idem_key": "forged", "token_hash": bytes(32)}
    values |= {name: value for name, value in unique.items() if name in values}
    if table in (tables.entry, tables.journal, tables.dataset_version):
        last = {tables.entry: "account_id", tables.journal: "stream"}.get(table, "dataset_id")
        values[last] = getattr(row, last)
        number = "version" if table is tables.dataset_version else "seq"
        values[number] = getattr(row, number) + 1
    if table is tables.entry:
        values["query_id"] = uuid4()
    if table is tables.user_role:
        values |= {"user_id": row.user_id, "role": "auditor"}
    if table is tables.budget_account:
        values |= {"rank": 0, "analyst_id": 77, "dataset_id": 7}
    return values


@BOTH
@pytest.mark.parametrize("old", [False, True])
def test_rows_that_come_or_go_are_found(
    old: bool, kind: str, request: pytest.FixtureRequest
) -> None:
    target: Target = request.getfixturevalue("upgraded" if old else "target")
    wrong, tried = [], 0
    for table in ALL:
        rows = target.rows(table)
        if not rows or not is_bound(table.name):
            continue
        for row in sample(rows, table, 1):
            key = [column == getattr(row, column.name) for column in table.primary_key]
            target.run(delete(table).where(*key))
            if target.is_valid:
                wrong.append(("deleted", table.name, row))
            target.run(insert(table).values(row._asdict()))
            tried += 1
        forged = fresh(table, rows[-1])
        if target.refuses(insert(table).values(forged)):
            continue
        tried += 1
        if target.is_valid:
            wrong.append(("forged", table.name, forged))
        target.run(
            delete(table).where(*(table.c[c.name] == forged[c.name] for c in table.primary_key))
        )
        target.run(delete(table))
        if target.is_valid:
            wrong.append(("emptied", table.name, None))
        for row in rows:
            target.run(insert(table).values(row._asdict()))
    assert wrong == []
    assert target.is_valid
    assert tried >= 20
    assert kind in ("sqlite", "postgresql")


@BOTH
def test_values_that_two_rows_exchange_are_found(target: Target) -> None:
    wrong, tried = [], 0
    for table in ALL:
        rows = target.rows(table)
        for column in table.c if is_bound(table.name) else ():
            if column.primary_key:
                continue
            pairs = ((rows[0], row) for row in reversed(rows))
            pair = next(
                (
                    (one, two)
                    for one, two in pairs
                    if getattr(one, column.name) != getattr(two, column.name)
                    and not why_not(table.name, column.name, one)
                    and not why_not(table.name, column.name, two)
                ),
                None,
            )
            if pair is None:
                continue
            one, two = pair
            values = getattr(one, column.name), getattr(two, column.name)
            with_third = other_value(column, values[0])
            steps = [(one, with_third), (two, values[0]), (one, values[1])]
            if any(target.refuses(set_field(table, row, column, value)) for row, value in steps):
                for row, value in ((one, with_third), (two, values[1]), (one, values[0])):
                    target.refuses(set_field(table, row, column, value))
                continue
            tried += 1
            if target.is_valid:
                wrong.append((table.name, column.name))
            for row, value in ((one, with_third), (two, values[1]), (one, values[0])):
                target.run(set_field(table, row, column, value))
    assert wrong == []
    assert target.is_valid
    assert tried >= 30
