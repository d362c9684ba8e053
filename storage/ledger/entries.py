"""The only way an account changes: one conditional UPDATE that also links entries to its chain.

Danger: two requests racing for the last of a budget both pass a check that was made before either
has written. So each guard stands in the WHERE of the UPDATE, with the sequence number that the
new head was computed from; whoever computes it holds the row's lock or SQLite's write lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Connection, LargeBinary, insert, select, update
from sqlalchemy.types import TypeEngine

from accounting.account import admits
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.statements import Each, InsertEach, driver_of
from storage.database.tables import budget_account, entry
from storage.journal.layouts import EntryKind, entry_digest, next_head
from storage.ledger.balances import LIMITS, MOVED, SUMS

_c = budget_account.c
NOTHING = (0,) * len(MEASURES)

_TYPES: dict[str, TypeEngine[Any]] = {
    "account": BigInteger(),
    "seen": BigInteger(),
    "last": BigInteger(),
    "linked": LargeBinary(),
    **{name: BigInteger() for name in MOVED},
}
Guard = Callable[[Sequence[Any]], ColumnElement[bool]]


def _change(guard: Guard | None, moved: Sequence[Any] = (), **values: int) -> Each:
    """The UPDATE that moves the columns ``moved`` by amounts, where ``guard`` of those holds."""

    def statement(each: Any) -> Any:
        amounts = [getattr(each, name) for name in MOVED]
        guards = [] if guard is None else [guard(amounts)]
        settings = {_c[name]: value for name, value in values.items()}
        moves = {column: column + by for column, by in zip(moved, amounts, strict=False)}
        return (
            update(budget_account)
            .where(_c.id == each.account, _c.seq == each.seen, *guards)
            .values({**moves, **settings, _c.seq: each.last, _c.head: each.linked})
            .returning(_c.id)
        )

    return Each(_TYPES, statement)


def _fits(charge: Sequence[Any]) -> ColumnElement[bool]:
    fits: ColumnElement[bool] = (_c.frozen == 0) & admits(LIMITS, SUMS, charge)
    return fits


def _limits_hold(change: Sequence[Any]) -> ColumnElement[bool]:
    limits = [column + by for column, by in zip(LIMITS, change, strict=True)]
    return admits(limits, SUMS, NOTHING)  # type: ignore[no-any-return]


CHARGE = _change(_fits, SUMS)
CHANGES: dict[EntryKind, Each] = {
    EntryKind.CHARGE: CHARGE,
    EntryKind.RELEASE: _change(None, SUMS),  # of negative amounts
    EntryKind.LIMIT_CHANGE: _change(_limits_hold, LIMITS),
    EntryKind.FREEZE: _change(lambda _: _c.frozen == 0, frozen=1),
    # With what is charged again because a restore had forgotten it.
    EntryKind.UNFREEZE: _change(lambda _: _c.frozen == 1, SUMS, frozen=0),
    EntryKind.GENESIS: _change(lambda _: _c.seq == 0, LIMITS),
}
ENTRIES = InsertEach(entry, [column.name for column in entry.c])


@dataclass(frozen=True, slots=True)
class Cause:
    """What an entry says of why it is there; the amounts are signed, one per measure."""

    kind: EntryKind
    actor: int
    at_us: int
    amounts: tuple[int, ...] = NOTHING
    query_id: UUID | None = None
    subject: bytes | None = None

    def entry(self, account_id: int, seq: int, head: bytes, query_id: Any) -> dict[str, Any]:
        """The row of the entry that follows ``head``; ``query_id`` is the id as it is stored."""
        id = None if self.query_id is None else self.query_id.bytes
        digest = entry_digest(
            account_id, self.kind, id, self.actor, self.amounts, self.at_us, self.subject
        )
        return {
            "account_id": account_id,
            "seq": seq,
            "kind": int(self.kind),
            "query_id": query_id,
            "actor": self.actor,
            **dict(zip(MOVED, self.amounts, strict=True)),
            "at_us": self.at_us,
            "digest": digest,
            "head": next_head(head, digest),
            "subject": self.subject,
        }


@dataclass(frozen=True, slots=True)
class Changed:
    """An account after its change, and the entry still to be added by ``add_entries``."""

    limit: PrivacyLoss
    charged: PrivacyLoss
    entry: dict[str, Any]


def change_account(
    connection: Connection, account_id: int, cause: Cause, seen: int | None = None
) -> Changed | None:
    """Changes one account as ``cause`` says; None, and nothing changed, when its guard refuses.

    ``seen``: the sequence number that the account must still have.
    """
    locked = select(_c.seq, _c.head).where(_c.id == account_id).with_for_update()
    row = connection.execute(locked).one_or_none()
    if row is None or seen not in (None, row.seq):
        return None
    added = cause.entry(account_id, row.seq + 1, row.head, cause.query_id)
    driver, dialect = driver_of(connection), connection.dialect
    moved = dict(zip(MOVED, cause.amounts, strict=True))
    values = {"account": account_id, "seen": row.seq, "last": row.seq + 1, "linked": added["head"]}
    if not CHANGES[cause.kind].of_each(driver, dialect, [values | moved])():
        return None
    after = connection.execute(select(*LIMITS, *SUMS).where(_c.id == account_id)).one()
    return Changed(PrivacyLoss(*after[: len(LIMITS)]), PrivacyLoss(*after[len(LIMITS) :]), added)


def add_entries(connection: Connection, changes: Sequence[Changed]) -> None:
    """Add the entries of all changes of one transaction, before it ends."""
    connection.execute(insert(entry), [change.entry for change in changes])
