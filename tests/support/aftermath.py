"""What must be true after a crash, by the books and by what had left before it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from storage.database import tables
from storage.ledger.replay import RELEASED, SETTLED
from tests.support.victims import said
from tests.support.world import World, check_invariants


def check_aftermath(world: World, journal: Path) -> int:
    """Nothing overspent, nothing forgotten, one answer a key; how many answers have left."""
    check_invariants(world.database)  # I1, I2, I10: the books agree with each other
    q = tables.query.c
    with world.database.read() as connection:
        stored = {row.idem_key: row for row in connection.execute(select(tables.query))}
        charged = select(tables.entry.c.query_id).where(tables.entry.c.kind == 1)
        paid = set(connection.execute(charged).scalars())
    assert q.idem_key is not None
    assert paid == {row.id for row in stored.values()}  # charge and query, both or neither
    answers: dict[str, str] = {}
    for what, key, body in said(journal):
        row = stored[key]  # never forgotten
        if what == "released":
            assert row.state == RELEASED
        elif what == "opened":
            assert row.state != RELEASED  # I3: paid for, and it stays so
        else:
            assert answers.setdefault(key, body) == body  # I4, I5: one answer a key
            assert (row.state, row.answer) == (SETTLED, bytes.fromhex(body))
    return len(answers)
