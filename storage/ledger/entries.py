"""The only way an account changes: one conditional UPDATE that also links an entry to its chain.

Each guard stands in the WHERE of the UPDATE it guards. Two requests racing for the last of a
budget would both pass a check that was made before either of them had written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Update,
    bindparam,
    insert,
    or_,
    update,
)

from accounting.privacy_loss import PrivacyLoss
from storage.database.expressions import chained
from storage.database.tables import budget_account, entry
from storage.journal.layouts import EntryKind, entry_digest

_c = budget_account.c
_eps, _delta = bindparam("eps", type_=BigInteger), bindparam("delta", type_=BigInteger)
_seen = bindparam("seen", type_=BigInteger)


def _change(moves: dict[Any, Any], *guards: ColumnElement[bool]) -> Update:
    linked = {_c.seq: _c.seq + 1, _c.head: chained(_c.head, bindparam("digest"))}
    return (
        update(budget_account)
        .where(_c.id == bindparam("account"), *guards)
        .values({**moves, **linked})
        .returning(
            _c.seq, _c.head, _c.lim_eps_n, _c.lim_delta_a, _c.charged_eps_n, _c.charged_delta_a
        )
    )


_charged = {
    _c.charged_eps_n: _c.charged_eps_n + _eps,
    _c.charged_delta_a: _c.charged_delta_a + _delta,
}
_limited = {_c.lim_eps_n: _c.lim_eps_n + _eps, _c.lim_delta_a: _c.lim_delta_a + _delta}

_fits = (
    _c.frozen == 0,
    _c.charged_eps_n + _eps <= _c.lim_eps_n,
    _c.charged_delta_a + _delta <= _c.lim_delta_a,
)
#: The charges of a whole batch at once. The links of its chain were worked out by whoever holds the
#: write lock, on the row as it was read under that lock, and as it still has to be.
CHARGES = (
    update(budget_account)
    .where(_c.id == bindparam("account"), _c.seq == _seen, *_fits)
    .values({**_charged, _c.seq: bindparam("last", type_=BigInteger), _c.head: bindparam("linked")})
    .returning(_c.id)
)

CHANGES: dict[EntryKind, Update] = {
    EntryKind.CHARGE: _change(_charged, *_fits),
    EntryKind.RELEASE: _change(_charged),  # of a negative amount
    EntryKind.LIMIT_CHANGE: _change(
        _limited,
        # The limits the difference was taken from, and, when asked for, the very last entry.
        _c.lim_eps_n == bindparam("old_eps"),
        _c.lim_delta_a == bindparam("old_delta"),
        or_(_seen < 0, _c.seq == _seen),
        _c.charged_eps_n <= _c.lim_eps_n + _eps,
        _c.charged_delta_a <= _c.lim_delta_a + _delta,
    ),
    EntryKind.FREEZE: _change({_c.frozen: 1}, _c.frozen == 0),
    # With what is charged again because a restore had forgotten it.
    EntryKind.UNFREEZE: _change({_c.frozen: 0, **_charged}, _c.frozen == 1),
    EntryKind.GENESIS: _change(_limited, _c.seq == 0),
}


@dataclass(frozen=True, slots=True)
class Cause:
    """What an entry says of why it is there; the amounts are signed."""

    kind: EntryKind
    actor: int
    at_us: int
    epsilon_nano: int = 0
    delta_atto: int = 0
    query_id: UUID | None = None
    subject: bytes | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """An account after its change, and the entry still to be added by ``add_entries``."""

    limit: PrivacyLoss
    charged: PrivacyLoss
    entry: dict[str, Any]


def change_account(
    connection: Connection, account_id: int, cause: Cause, **guard: int
) -> Changed | None:
    """Change one account as ``cause`` says; None, and nothing changed, when its guard refuses."""
    digest = entry_digest(
        account_id,
        cause.kind,
        cause.query_id,
        cause.actor,
        cause.epsilon_nano,
        cause.delta_atto,
        cause.at_us,
        cause.subject,
    )
    values: dict[str, Any] = {"account": account_id, "digest": digest, **guard}
    if cause.kind != EntryKind.FREEZE:
        values |= {"eps": cause.epsilon_nano, "delta": cause.delta_atto}
    row = connection.execute(CHANGES[cause.kind], values).one_or_none()
    if row is None:
        return None
    return Changed(
        limit=PrivacyLoss(row.lim_eps_n, row.lim_delta_a),
        charged=PrivacyLoss(row.charged_eps_n, row.charged_delta_a),
        entry={
            "account_id": account_id,
            "seq": row.seq,
            "kind": int(cause.kind),
            "query_id": cause.query_id,
            "actor": cause.actor,
            "d_eps_n": cause.epsilon_nano,
            "d_delta_a": cause.delta_atto,
            "at_us": cause.at_us,
            "digest": digest,
            "head": row.head,
            "subject": cause.subject,
        },
    )


def add_entries(connection: Connection, changes: Sequence[Changed]) -> None:
    """Add the entries of all changes of one transaction, before it ends."""
    connection.execute(insert(entry), [change.entry for change in changes])
