"""One transaction of the writer: every reserve and settle that was waiting.

A refusal is an outcome, decided by the guard of the member alone. Anything unexpected is an
exception: then nothing of the batch stands, and the writer runs the members one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from storage.journal.writer import Failed
from storage.ledger.charging import reserve_all
from storage.ledger.requests import Reservation, Reserve, Settle
from storage.ledger.settling import settle

Member = Reserve | Settle
#: Of a reserve: the reservation, or None when the key is known. Of a settle: whether it is stored.
Outcome = Reservation | bool | None
Outcomes = list[Outcome | Failed]


def run(connection: Connection, members: Sequence[Member], lease_us: int) -> Outcomes:
    """The outcomes of all members, in their order; nothing stands before the commit."""
    settles = [member for member in members if isinstance(member, Settle)]
    reserves = [member for member in members if isinstance(member, Reserve)]
    settled = iter(settle(connection, settles) if settles else ())
    reserved = iter(reserve_all(connection, reserves, lease_us) if reserves else ())
    outcomes: Outcomes = []
    for member in members:
        if isinstance(member, Settle):
            outcomes.append(next(settled))
            continue
        outcome = next(reserved)
        outcomes.append(Failed(outcome) if isinstance(outcome, Exception) else outcome)
    return outcomes
