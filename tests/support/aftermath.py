"""Checks after a crash: the accounts against the queries, and the answers that clients have."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from storage.database import tables
from storage.ledger.requests import QueryState
from tests.support.victims import said
from tests.support.world import World, check_invariants


def check_aftermath(world: World, journal: Path) -> int:
    """No overspending, no forgotten charge, one answer per key. Returns the number of answers."""
    check_invariants(world.database)  # I1, I2, I10: accounts, entries and queries agree
    q = tables.query.c
    with world.database.read() as connection:
        stored = {row.idem_key: row for row in connection.execute(select(tables.query))}
        charged = select(tables.entry.c.query_id).where(tables.entry.c.kind == 1)
        paid = set(connection.execute(charged).scalars())
    assert q.idem_key is not None
    assert paid == {row.id for row in stored.values()}  # both or neither
    answers: dict[str, str] = {}
    for what, key, body in said(journal):
        row = stored[key]  # no query is forgotten
        if what == "released":
            assert row.state == QueryState.RELEASED
        elif what == "opened":
            assert row.state != QueryState.RELEASED  # I3: the charge is permanent
        else:
            assert answers.setdefault(key, body) == body  # I4, I5: one answer per key.
            assert (row.state, row.answer) == (QueryState.SETTLED, bytes.fromhex(body))
    return len(answers)
