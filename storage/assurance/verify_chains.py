"""The first half of a verification: every account's chain, from its genesis to its last entry.

One pass over all entries in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, select, true

from storage.assurance.heads import Published
from storage.database.expressions import uuid_bytes
from storage.database.snapshot import streamed
from storage.database.tables import budget_account, entry
from storage.journal.layouts import (
    EMPTY_HEAD,
    EntryKind,
    account_subject,
    entry_digest,
    next_head,
)

_e = entry.c
_ENTRIES: Select[Any] = select(
    _e.account_id,
    _e.seq,
    _e.kind,
    uuid_bytes(_e.query_id).label("query"),
    _e.actor,
    _e.d_eps_n,
    _e.d_delta_a,
    _e.at_us,
    _e.digest,
    _e.head,
    _e.subject,
).order_by(_e.account_id, _e.seq)

CHARGE, RELEASE, LIMIT_CHANGE, FREEZE, UNFREEZE, GENESIS = (int(kind) for kind in EntryKind)


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that contradicts the rest of the ledger: its table, its key in words, the reason."""

    table: str
    row: str
    reason: str

    def __str__(self) -> str:
        return f"{self.table}: {self.row}: {self.reason}"


@dataclass
class Chains:
    """The accounts under verification, and sums of their entries.

    ``opened_us``: the moment of each opening. ``carried``: the charge of an account
    over all datasets at its opening. ``recharged``: the charges of unfreezes.
    """

    rows: dict[int, Row[Any]]
    #: The condition that selects the accounts; None for all accounts.
    concerned: ColumnElement[bool] | None = None
    entries: int = 0
    opened_us: dict[int, int] = field(default_factory=dict)
    carried: dict[int, tuple[int, int]] = field(default_factory=dict)
    recharged: dict[int, tuple[int, int]] = field(default_factory=dict)

    def entries_of_accounts(self) -> ColumnElement[bool]:
        """The condition that an entry belongs to one of these accounts."""
        if self.concerned is None:
            return true()
        return _e.account_id.in_(select(budget_account.c.id).where(self.concerned))


def check_chains(
    connection: Connection, chains: Chains, heads: Mapping[int, Published] | None
) -> Bad | None:
    """The first row whose chain, sum, limit or state contradicts the entries."""
    entries = _ENTRIES.where(chains.entries_of_accounts())
    waiting = iter(chains.rows.values())
    walk: _Walk | None = None
    for row in streamed(connection, entries):
        if walk is None or walk.id != row[0]:
            if walk is not None and (bad := walk.finish(chains)):
                return bad
            account = next(waiting, None)
            # Both are in the order of account ids, so a gap in either is a contradiction.
            if account is None or account.id > row[0]:
                return Bad("entry", _name(row[0], row[1]), "belongs to no account")
            if account.id < row[0]:
                return _empty(account)
            walk = _Walk(account, (heads or {}).get(account.id))
        if reason := walk.step(row):
            return Bad("entry", _name(row[0], row[1]), reason)
        chains.entries += 1
    if walk is not None and (bad := walk.finish(chains)):
        return bad
    for account in waiting:
        return _empty(account)
    if chains.concerned is None:
        for id in sorted(heads or {}):
            if id not in chains.rows:
                return Bad("budget_account", f"account {id}", "was published and is gone")
    return None


class _Walk:
    """One account, entry by entry."""

    def __init__(self, account: Row[Any], published: Published | None) -> None:
        self.id: int = account.id
        self._account, self._published = account, published
        self._seq, self._head, self._frozen = 0, EMPTY_HEAD, 0
        self._eps = self._delta = self._limit_eps = self._limit_delta = 0
        self._opened = 0
        self._carried, self._recharged = (0, 0), (0, 0)

    def step(self, row: Any) -> str | None:
        """Add the next entry. Returns the reason if it is bad, else None."""
        account, seq, kind, query, actor, eps, delta, at_us, digest, head, subject = row
        self._seq += 1
        if seq != self._seq:
            return f"follows entry {self._seq - 1}: what lay between is missing"
        if query is not None and len(query) != 16:
            return "names no query"
        if entry_digest(account, kind, query, actor, (eps, delta), at_us, subject) != digest:
            return "is not what its digest was made of"
        self._head = next_head(self._head, digest)
        if head != self._head:
            return "does not follow from the head before it"
        if self._published and seq == self._published.seq and head != self._published.head:
            return "has another head than the one that was published"
        return self._count(kind, query, eps, delta, at_us, subject)

    def _count(
        self,
        kind: int,
        query: bytes | None,
        eps: int,
        delta: int,
        at_us: int,
        subject: bytes | None,
    ) -> str | None:
        if (self._seq == 1) != (kind == GENESIS):
            return "is a genesis, which comes first and once" if self._seq > 1 else "is no genesis"
        if kind in (CHARGE, RELEASE):
            self._eps += eps
            self._delta += delta
            if query is None:
                if kind == RELEASE or self._seq != 2 or self._account.rank != 1:
                    return "belongs to no query"
                self._carried = eps, delta
            if (eps < 0 or delta < 0) if kind == CHARGE else (eps > 0 or delta > 0):
                return "has an amount of the wrong sign"
        elif kind == GENESIS:
            row = self._account
            expected = account_subject(row.rank, row.dataset_id, row.analyst_id)
            if subject is not None and subject != expected:
                return "was the genesis of an account for somebody or something else"
            self._opened, self._limit_eps, self._limit_delta = at_us, eps, delta
        elif kind == LIMIT_CHANGE:
            self._limit_eps += eps
            self._limit_delta += delta
        else:
            if self._frozen == (kind == FREEZE):
                return "changes nothing: that is how the account stood"
            self._frozen = int(kind == FREEZE)
            self._eps += eps
            self._delta += delta
            self._recharged = self._recharged[0] + eps, self._recharged[1] + delta
            if eps < 0 or delta < 0 or (kind == FREEZE and (eps or delta)):
                return "has an amount of the wrong sign"
        if not (0 <= self._eps <= self._limit_eps and 0 <= self._delta <= self._limit_delta):
            return "leaves the account charged beyond its limit, or below nothing"
        return None

    def finish(self, chains: Chains) -> Bad | None:
        """Compare the sums of the entries with the row of the account."""
        row, published = self._account, self._published
        name = f"account {self.id}"
        if published and self._seq < published.seq:
            return Bad("entry", _name(self.id, self._seq + 1), "was published and is missing")
        for column, stored, summed in (
            ("seq", row.seq, self._seq),
            ("head", row.head, self._head),
            ("charged_eps_n", row.charged_eps_n, self._eps),
            ("charged_delta_a", row.charged_delta_a, self._delta),
            ("lim_eps_n", row.lim_eps_n, self._limit_eps),
            ("lim_delta_a", row.lim_delta_a, self._limit_delta),
            ("frozen", row.frozen, self._frozen),
        ):
            if stored != summed:
                return Bad("budget_account", name, f"{column} is not what its entries add up to")
        chains.opened_us[self.id] = self._opened
        chains.carried[self.id] = self._carried
        chains.recharged[self.id] = self._recharged
        return None


def _empty(account: Row[Any]) -> Bad:
    return Bad("budget_account", f"account {account.id}", "has no entries")


def _name(account_id: int, seq: int) -> str:
    return f"account {account_id}, entry {seq}"
