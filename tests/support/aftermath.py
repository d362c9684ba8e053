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
    # Invariants I1, I2 and I10: the sums of accounts agree with entries and queries, and the hashes
    # of entries form chains.
    check_invariants(world.database)
    q = tables.query.c
    with world.database.read() as connection:
        stored = {row.idem_key: row for row in connection.execute(select(tables.query))}
        charged = select(tables.entry.c.query_id).where(tables.entry.c.kind == 1)
        paid = set(connection.execute(charged).scalars())
    assert q.idem_key is not None
    # Every stored query has a charge, and every charge has a stored query.
    assert paid == {row.id for row in stored.values()}
    answers: dict[str, str] = {}
    for what, key, body in said(journal):
        # Every query that a client reported is stored, so its key is in the table.
        row = stored[key]
        if what == "released":
            assert row.state == QueryState.RELEASED
        elif what == "opened":
            assert row.state != QueryState.RELEASED
            # Invariant I3: a client that began to compute has spent its charge, and the query
            # is never released.
        else:
            # Invariants I4 and I5: each key has one answer, and the stored one is the answer that
            # was sent.
            assert answers.setdefault(key, body) == body
            assert (row.state, row.answer) == (QueryState.SETTLED, bytes.fromhex(body))
    return len(answers)
