"""Verification finds every single change, and nothing where nothing was changed."""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Column, Table, delete, insert, select
from sqlalchemy.exc import IntegrityError

from storage.assurance.heads import Published
from storage.assurance.verification import datasets_of, verify
from storage.database import tables
from storage.database.database import Database
from storage.journal.layouts import EntryKind
from storage.ledger.ledger import Reservation
from tests.support.ledgers import busy_ledger
from tests.support.tampering import other_value, rows_of, set_field, tampering
from tests.support.world import World, request

LEDGER = (tables.budget_account, tables.entry, tables.query)


def bound(table: Table, column: str, row: Any) -> bool:
    """Whether a change of this field is to be detected: all, but the working state of a query."""
    if table is not tables.query or row.state != 0:
        return True
    return column != "lease_until" and (column != "attempt_us" or row.attempt == 1)


def other_values(table: Table, column: Column[Any], value: Any) -> list[Any]:
    """What a field is changed to: every other state, or something else."""
    if table is tables.query and column.name == "state":
        return [state for state in range(4) if state != value]
    return [other_value(column, value)]


def secret_url(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)


def test_an_honest_ledger_is_valid_as_a_whole_and_for_everyone(world: World) -> None:
    analysts = busy_ledger(world, 60)
    whole = verify(world.database)
    assert (whole.valid, whole.first_bad) == (True, None)
    with world.database.read() as connection:
        assert whole.extent.entries == len(rows_of(connection, tables.entry))
        assert len(whole.accounts) == len(rows_of(connection, tables.budget_account)) == 8
    own = [
        whole.extent_of(analyst.id, lambda row, analyst=analyst: row.analyst_id == analyst.id)
        for analyst in analysts
    ]
    owned = datasets_of(world.database, world.owner.id)
    owner = whole.extent_of(owned, lambda row: row.dataset_id in owned)
    assert [one.accounts for one in (*own, owner)] == [2, 2, 2, 8]
    # Each charge and each release has one entry in the analyst's account and one in the cap, the
    # account of the dataset.
    assert sum(one.entries for one in own) * 2 == whole.extent.entries + 6 + 2 + 1 - 2
    assert owner.head == whole.extent.head
    assert len({one.head for one in own}) == 3


def test_an_empty_ledger_is_valid(world: World) -> None:
    result = verify(world.database)
    assert (result.valid, *result.extent[:2]) == (True, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_changed_field_of_ten_thousand_entries_is_found(world: World) -> None:
    """Every column of every ledger table, on the first, the last and random rows."""
    busy_ledger(world, 4800)
    assert verify(world.database).extent.entries >= 10_000
    check_fields(world, random.Random(11), rows_each=1)


@pytest.mark.long
def test_every_changed_field_is_found(world: World) -> None:
    """The same on both databases and more rows."""
    busy_ledger(world, 30)
    check_fields(world, random.Random(12), rows_each=2)


def check_fields(world: World, rng: random.Random, rows_each: int) -> None:
    missed, tried, refused = [], 0, 0
    with tampering(secret_url(world.database)) as run:
        for table in LEDGER:
            with world.database.read() as connection:
                rows = rows_of(connection, table)
            for column in table.c:
                sample = {0, len(rows) - 1, *rng.sample(range(len(rows)), rows_each)}
                for row in (rows[index] for index in sorted(sample)):
                    if not bound(table, column.name, row):
                        continue
                    for value in other_values(table, column, getattr(row, column.name)):
                        try:
                            run(set_field(table, row, column, value))
                        except IntegrityError:
                            refused += 1  # a constraint of the database refuses the changed row
                            continue
                        tried += 1
                        if verify(world.database).valid:
                            missed.append((table.name, column.name, row))
                        key = {c.name: getattr(row, c.name) for c in table.primary_key}
                        key |= {column.name: value} if column.name in key else {}
                        run(set_field(table, row, column, getattr(row, column.name), key))
    assert missed == []
    assert tried >= 100
    assert refused <= tried // 4
    assert verify(world.database).valid


def test_another_published_version_is_found(world: World) -> None:
    """And when its lease ran out, and when a later attempt of it began."""
    dataset, analyst = world.ready()
    over = [world.ledger.reserve(request(dataset, analyst, key=key)) for key in "abc"]
    running = world.ledger.reserve(request(dataset, analyst, key="running"))
    world.publish(dataset)
    _late, settled, released = over
    assert isinstance(settled, Reservation)
    assert isinstance(released, Reservation)
    assert isinstance(running, Reservation)
    world.lapse()
    second = world.ledger.reserve(request(dataset, analyst, key="a"))
    assert isinstance(second, Reservation)
    assert second.attempt == 2
    for reservation in (second, settled):
        assert world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    assert world.ledger.release(released)
    with world.database.read() as connection:
        rows = {row.id: row for row in rows_of(connection, tables.query)}
    c = tables.query.c
    with tampering(secret_url(world.database)) as run:
        for reservation in over:
            row = rows[reservation.query_id]  # type: ignore[union-attr]
            for column, value in (
                (c.dataset_version, 2),
                (c.lease_until, row.lease_until + 1),
                (c.attempt_us, row.attempt_us + 1),
            ):
                run(set_field(tables.query, row, column, value))
                assert not verify(world.database).valid, column.name
                run(set_field(tables.query, row, column, getattr(row, column.name)))
                assert verify(world.database).valid
        row = rows[running.query_id]
        run(set_field(tables.query, row, c.dataset_version, 2))
        assert not verify(world.database).valid


def test_the_first_bad_row_is_named(world: World) -> None:
    busy_ledger(world, 12)
    with world.database.read() as connection:
        row = rows_of(connection, tables.entry)[-2]
        query = connection.execute(select(tables.query).where(tables.query.c.state == 1)).first()
        account = rows_of(connection, tables.budget_account)[3]
    assert query is not None
    cases = (
        (tables.entry, row, tables.entry.c.actor, "entry", f"entry {row.seq}"),
        (tables.query, query, tables.query.c.answer, "query", str(query.id)),
        (
            tables.budget_account,
            account,
            tables.budget_account.c.lim_eps_n,
            "budget_account",
            f"account {account.id}",
        ),
    )
    with tampering(secret_url(world.database)) as run:
        for table, bad, column, name, words in cases:
            value = getattr(bad, column.name)
            run(set_field(table, bad, column, other_value(column, value)))
            first = verify(world.database).first_bad
            assert first is not None
            assert first.table == name
            assert words in first.row
            run(set_field(table, bad, column, value))


def test_rows_that_come_or_go_are_found(world: World) -> None:
    busy_ledger(world, 12)
    database = world.database
    with database.read() as connection:
        all_rows = {table: rows_of(connection, table) for table in LEDGER}
    with tampering(secret_url(database)) as run:
        for table, rows in all_rows.items():
            for row in (rows[0], rows[len(rows) // 2], rows[-1]):
                key = [column == getattr(row, column.name) for column in table.primary_key]
                run(delete(table).where(*key))
                assert not verify(database).valid, (table.name, row)
                run(insert(table).values(row._asdict()))
                assert verify(database).valid
        for table, rows in all_rows.items():
            forged = {**rows[-1]._asdict(), **fresh_key(table, rows[-1])}
            run(insert(table).values(forged))
            assert not verify(database).valid, table.name
            run(delete(table).where(*(table.c[k] == forged[k] for k in fresh_key_names(table))))
    assert verify(database).valid


def fresh_key_names(table: Table) -> list[str]:
    return [column.name for column in table.primary_key]


def fresh_key(table: Table, row: Any) -> dict[str, Any]:
    """What makes a copy of the row another row."""
    if table is tables.budget_account:
        return {"id": row.id + 1, "analyst_id": 77, "dataset_id": 7, "rank": 0}
    if table is tables.entry:
        return {"seq": row.seq + 1, "account_id": row.account_id, "query_id": uuid4()}
    if table is tables.query:
        return {"id": uuid4(), "idem_key": "forged"}
    return {"query_id": uuid4()}


def test_a_truncated_tail_is_found_against_published_heads(world: World) -> None:
    """A chain cut off with its account, queries and settlements: valid but for the heads."""
    dataset, analyst = world.ready()
    world.ledger.reserve(request(dataset, analyst))
    database = world.database
    before = rows_now(database)
    world.ledger.reserve(request(dataset, analyst))
    heads = {
        row.id: Published(row.id, row.seq, row.head, None)  # type: ignore[arg-type]
        for row in rows_now(database)[tables.budget_account]
    }
    assert verify(database, heads=heads).valid
    with tampering(secret_url(database)) as run:
        for table in reversed(tables.metadata.sorted_tables):
            run(delete(table))
        for table, rows in before.items():
            for row in rows:
                run(insert(table).values(row._asdict()))
    assert verify(database).valid
    bad = verify(database, heads=heads).first_bad
    assert bad is not None
    assert "was published and is missing" in bad.reason
    with tampering(secret_url(database)) as run:
        for table in reversed(tables.metadata.sorted_tables):
            run(delete(table))
    bad = verify(database, heads=heads).first_bad
    assert bad is not None
    assert "was published and is gone" in bad.reason


def test_another_head_at_the_published_place_is_found(world: World) -> None:
    dataset, analyst = world.ready()
    world.ledger.reserve(request(dataset, analyst))
    rows = rows_now(world.database)[tables.budget_account]
    heads = {
        row.id: Published(row.id, row.seq, bytes(32), None)  # type: ignore[arg-type]
        for row in rows
    }
    world.ledger.reserve(request(dataset, analyst))
    bad = verify(world.database, heads=heads).first_bad
    assert bad is not None
    assert bad.reason == "has another head than the one that was published"


def test_answers_to_be_seen_later_look_as_if_they_ran(world: World) -> None:
    """Neither their digests nor their bytes are looked at before their instant."""
    dataset, analyst = world.ready()
    reservation = world.ledger.reserve(request(dataset, analyst))
    release_us = world.now() + 3_600_000_000
    assert world.ledger.settle(reservation, status=201, body=b"x", release_us=release_us)  # type: ignore[arg-type]
    (row,) = rows_now(world.database)[tables.query]
    with tampering(secret_url(world.database)) as run:
        run(set_field(tables.query, row, tables.query.c.answer, b"y"))
        assert verify(world.database, released_only=True).valid
        assert not verify(world.database).valid
        # Danger: an instant in the far future would hide a changed answer from this check. No clock
        # gives such an instant, so the row counts as bad.
        run(set_field(tables.query, row, tables.query.c.release_us, release_us * 2))
        assert not verify(world.database, released_only=True).valid


def rows_now(database: Database) -> dict[Table, list[Any]]:
    with database.read() as connection:
        return {table: rows_of(connection, table) for table in tables.metadata.sorted_tables}


def test_kinds_are_what_the_checks_take_them_for() -> None:
    assert [int(kind) for kind in EntryKind] == [1, 2, 3, 4, 5, 6]


def test_an_extent_is_computed_once_for_equal_callers(world: World) -> None:
    busy_ledger(world, 3)
    outcome, calls = verify(world.database), []
    extents = [
        outcome.extent_of(frozenset({1}), lambda row: calls.append(row) or bool(row.analyst_id))
        for _ in range(2)
    ]
    assert extents[0] == extents[1] != outcome.extent
    assert len(calls) == len(outcome.accounts)
