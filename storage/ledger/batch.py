"""What one transaction of the writer does: every reserve and settle that was waiting.

A refusal is an outcome, decided by the guard of the member alone. Anything unexpected is an
exception: then nothing of the batch stands, and the writer runs the members one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Dialect

from storage.database.statements import driver_of
from storage.journal.layouts import ending_digest
from storage.journal.writer import Failed
from storage.ledger import batch_postgresql
from storage.ledger.charging import Reserving
from storage.ledger.requests import Reservation, Reserve, Settle
from storage.ledger.settling import SETTLE, SETTLEMENT

Member = Reserve | Settle
#: Of a reserve: the reservation, or None when the key is known. Of a settle: whether it is stored.
Outcome = Reservation | bool | None
Outcomes = list[Outcome | Failed]


def run(connection: Connection, members: Sequence[Member], lease_us: int) -> Outcomes:
    """The outcomes of all members, in their order; nothing stands before the commit."""
    if connection.dialect.name == "postgresql":
        return batch_postgresql.run(connection, members, lease_us)
    driver, dialect = driver_of(connection), connection.dialect
    reserving = Reserving(driver, dialect, lease_us)
    outcomes: Outcomes = []
    settlements: list[dict[str, Any]] = []
    for member in members:
        if isinstance(member, Settle):
            settlement = _settle(driver, dialect, member)
            outcomes.append(settlement is not None)
            settlements += [] if settlement is None else [settlement]
            continue
        outcome = reserving.reserve(member)
        outcomes.append(Failed(outcome) if isinstance(outcome, Exception) else outcome)
    reserving.charge()
    SETTLEMENT.insert_all(driver, dialect, settlements)
    return outcomes


def _settle(driver: Any, dialect: Dialect, member: Settle) -> dict[str, Any] | None:
    """Store the answer; the row of ``settlement``, None when the attempt has lost the query."""
    id, digest = member.query_id.bytes, sha256(member.body).digest()
    stored = SETTLE.rows(
        driver,
        dialect,
        {
            "query": id,
            "mine": member.attempt,
            "lapsed_at": -1,
            "body": member.body,
            "hash": digest,
            "status": member.status,
            "release": member.release_us,
        },
    )
    if not stored:
        return None
    (row,) = stored
    return {
        "query_id": id,
        "attempt": member.attempt,
        "answer_hash": digest,
        "at_us": row.settled_us,
        "digest": ending_digest(
            member.query_id,
            member.attempt,
            row.dataset_version,
            member.status,
            digest,
            row.settled_us,
            member.release_us,
            (row.attempt_us, row.lease_until),
        ),
    }
