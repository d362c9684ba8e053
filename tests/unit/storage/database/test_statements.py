"""Statements of the hot path: what a row of values has, and what the driver stores of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, column, select

from storage.database.database import Database
from storage.database.statements import Each, InsertEach
from storage.database.tables import entry, users
from storage.database.types import Big

ONE = Each(
    (users.c.id, column("more", Big)),
    lambda each: select(users.c.id, each.more).where(users.c.id == each.id, users.c.disabled == 0),
)


@pytest.mark.parametrize("row", [(), (1,), (1, 2, 3)])
def test_a_row_of_another_length_is_an_error(database: Database, row: tuple[int, ...]) -> None:
    # The driver receives the constants of a statement as parameters too. None of them may take the
    # place of a value that the row lacks.
    def work(connection: Connection) -> Any:
        return ONE.of_each(connection, [row])()

    with pytest.raises(ValueError, match=r"."):
        database.write(work)


def test_bytes_ids_and_nulls_are_stored_as_they_are(database: Database) -> None:
    row: dict[str, Any] = {
        **dict.fromkeys(("account_id", "seq", "kind", "actor", "d_eps_n", "d_delta_a"), 1),
        **{"at_us": 2, "query_id": UUID(int=5), "digest": bytes(32), "head": b"h" * 32},
        **dict.fromkeys(("bound", "d_rho_f", "d_unpriced", "d_gaussian")),
    }
    rows = InsertEach(entry, tuple(row))

    def work(connection: Connection) -> tuple[int, Any]:
        inserted = rows.insert(connection, [tuple(row.values())])
        return inserted(), connection.execute(select(entry)).one()

    inserted, stored = database.write(work)
    assert inserted == 1
    assert stored._asdict() == row


def test_rows_that_exist_are_left_out_and_not_counted(database: Database) -> None:
    rows = InsertEach(users, ("name", "created_us"), key=("name",))

    def insert(*names: str) -> int:
        many = [(name, 1) for name in names]
        return database.write(lambda connection: rows.insert(connection, many)())

    assert insert("ada", "bob") == 2
    assert insert("bob", "cid", "dan", "ada") == 2
    assert insert("ada") == 0
