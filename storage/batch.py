"""What one transaction of the writer does: every reserve and settle that was waiting.

A refusal is an outcome, decided by the guard of the member alone. Anything unexpected is an
exception: then nothing of the batch stands, and the writer runs the members one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from sqlalchemy import Connection

from storage import batch_postgresql
from storage.chain import ending_digest
from storage.reservation import Reservation, Reserve, Settle
from storage.reserving import Reserving
from storage.settling import SETTLE, SETTLEMENT
from storage.statements import driver_of
from storage.writer import Failed

Member = Reserve | Settle
#: Of a reserve: the reservation, or None when the key is known. Of a settle: whether it is stored.
Outcome = Reservation | bool | None


def run(connection: Connection, members: Sequence[Member], lease_us: int) -> list[Outcome | Failed]:
    """The outcomes of all members, in their order; nothing stands before the commit."""
    if connection.dialect.name == "postgresql":
        return batch_postgresql.run(connection, members, lease_us)
    reserving = Reserving(driver_of(connection), connection.dialect, lease_us)
    outcomes: list[Outcome | Failed] = []
    for member in members:
        if isinstance(member, Settle):
            outcomes.append(_settle(connection, member))
            continue
        outcome = reserving.reserve(member)
        outcomes.append(Failed(outcome) if isinstance(outcome, Exception) else outcome)
    return outcomes


def _settle(connection: Connection, member: Settle) -> bool:
    driver, dialect = driver_of(connection), connection.dialect
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
        return False
    (row,) = stored
    values = {
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
    SETTLEMENT.run_many(driver, dialect, [values])
    return True
