"""The first half of a verification: every account's hash chain, from its first entry to its last.

It is one pass over all entries in the order of account and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import add, itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, select, true

from accounting.account import AccountRank, admits
from accounting.conversion import holds
from accounting.rho import pure_femto
from storage.assurance.head_lines import Published, Verified
from storage.database.expressions import uuid_bytes
from storage.database.snapshot import streamed
from storage.database.tables import EPOCH, budget_account, entry
from storage.journal.layouts import (
    EMPTY_HEAD,
    EntryKind,
    account_subject,
    entry_digest,
    next_head,
)
from storage.ledger.accounts import LIMITS, MOVED_LIMIT, SUMS
from storage.ledger.entries import NOTHING
from storage.ledger.freezing import OPERATOR

_a, _e = budget_account.c, entry.c
_ENTRIES: Select[Any] = select(
    _e.account_id,
    _e.seq,
    _e.kind,
    uuid_bytes(_e.query_id),
    _e.actor,
    _e.at_us,
    _e.digest,
    _e.head,
    _e.bound,
    *(_e[name] for name in MOVED_LIMIT),
).order_by(_e.account_id, _e.seq)

CHARGE, RELEASE, LIMIT_CHANGE, FREEZE, UNFREEZE, GENESIS = (int(kind) for kind in EntryKind)

#: One whole number per measure of privacy loss, as in ``accounting.measures``. The amounts of a
#: limit end with its permission of releases without a finite ε, 1 or 0.
Amounts = tuple[int, ...]
#: The number of measures (ε and δ) that an entry has if it is not counted in ρ.
NOT_IN_RHO = 2
_NO_LIMIT = (*NOTHING, 0)
BEYOND = "leaves a limit in ρ beyond what its ε and δ_c allow"


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that contradicts other rows: its table, its key in words, and the contradiction."""

    table: str
    row: str
    reason: str
    #: The ids of the dataset and of the analyst that the row concerns. An id is 0 if there is none
    #: or several, such as the analyst of an account that all analysts share.
    dataset_id: int = 0
    analyst_id: int = 0

    def __str__(self) -> str:
        return f"{self.table}: {self.row}: {self.reason}"


@dataclass
class Chains:
    """The rows of the accounts under verification, and the sums of their entries."""

    rows: dict[int, Row[Any]]
    #: The SQL condition that selects the accounts to verify; None for all accounts.
    concerned: ColumnElement[bool] | None = None
    sums: dict[int, ChainSums] = field(default_factory=dict)

    def entries_of_accounts(self) -> ColumnElement[bool]:
        """The condition that an entry belongs to one of these accounts."""
        if self.concerned is None:
            return true()
        return _e.account_id.in_(select(_a.id).where(self.concerned))


def check_new_entries(
    connection: Connection,
    chains: Chains,
    heads: Mapping[int, Published],
    verified: Mapping[int, Verified],
) -> Bad | None:
    """As ``check_chains`` for all accounts, but from the entry up to which each was verified.

    The time grows with the accounts and the new entries, not with the older ones.
    """
    for id in sorted(set(heads) | set(verified)):
        if id not in chains.rows:
            return Bad("budget_account", f"account {id}", "was published and is gone")
    for account in chains.rows.values():
        sums = ChainSums(account, heads.get(account.id), verified.get(account.id))
        chains.sums[account.id] = sums
        if sums.seq < account.seq:
            new = _ENTRIES.where(_e.account_id == account.id, _e.seq > sums.seq)
            for row in streamed(connection, new):
                if reason := sums.add(row):
                    return _of(account, Bad("entry", _name(account.id, row[1]), reason))
        if bad := sums.compare():
            return _of(account, bad)
    return None


def _of(account: Row[Any], bad: Bad) -> Bad:
    return replace(bad, dataset_id=account.dataset_id, analyst_id=account.analyst_id)


def check_chains(
    connection: Connection, chains: Chains, heads: Mapping[int, Published] | None
) -> Bad | None:
    """The first row whose chain, sum, limit or state contradicts the entries; None if none does.

    ``heads``: published states by account, which the chains must contain.
    """
    heads = heads or {}
    entries = streamed(connection, _ENTRIES.where(chains.entries_of_accounts()))
    waiting = iter(chains.rows.values())
    for id, rows in groupby(entries, itemgetter(0)):
        account = next(waiting, None)
        # Accounts and entries are both sorted by account id. If the two ids differ here, entries
        # have no account or an account has no entries.
        if account is None or account.id > id:
            return Bad("entry", _name(id, next(rows)[1]), "belongs to no account")
        if account.id < id:
            return _empty(account)
        sums = chains.sums[id] = ChainSums(account, heads.get(id))
        for row in rows:
            if reason := sums.add(row):
                return _of(account, Bad("entry", _name(id, row[1]), reason))
        if bad := sums.compare():
            return _of(account, bad)
    for account in waiting:
        return _empty(account)
    if chains.concerned is None:
        for id in sorted(set(heads) - set(chains.rows)):
            return Bad("budget_account", f"account {id}", "was published and is gone")
    return None


#: The sums of an account before its first entry, from which a verification of its whole chain
#: begins.
_NEW = Verified(
    account=0,
    seq=0,
    head=EMPTY_HEAD,
    charged=NOTHING,
    limit=_NO_LIMIT,
    carried=NOTHING,
    recharged=NOTHING,
    frozen=0,
    opened_us=0,
    uncounted=0,
)


class ChainSums:
    """The sums of one account's entries, against the account's row and its published state.

    ``opened_us``: the moment of the account's opening, microseconds. ``carried``: the charge that
    an account over all datasets got at its opening. ``recharged``: the charges of unfreezes.
    ``uncounted``: the ρ of charges that were not counted in ρ, less what was filled in.
    """

    def __init__(
        self, account: Row[Any], published: Published | None, verified: Verified | None = None
    ) -> None:
        self._account, self._published = account, published
        since = verified or _NEW
        self._seq, self._head, self._frozen = since.seq, since.head, since.frozen
        self._charged, self._limit = since.charged, since.limit
        self.opened_us, self.carried, self.recharged = (
            since.opened_us,
            since.carried,
            since.recharged,
        )
        self.uncounted = since.uncounted
        #: When the operator accepts a rollback, a frozen account may get a limit in ρ above the one
        #: that its ε and δ_c allow, so that the lost charges fit it. True after such an entry. The
        #: next entry must unfreeze the account and use up the limit, or it is reported.
        self._beyond = False

    @property
    def seq(self) -> int:
        """The number of the last entry that was added."""
        return self._seq

    def verified(self) -> Verified:
        """The state after the entries that were added."""
        return Verified(
            account=self._account.id,
            seq=self._seq,
            head=self._head,
            charged=self._charged,
            limit=self._limit,
            carried=self.carried,
            recharged=self.recharged,
            frozen=self._frozen,
            opened_us=self.opened_us,
            uncounted=self.uncounted,
        )

    def add(self, row: tuple[Any, ...]) -> str | None:
        """Add the next entry. Returns its contradiction in words, or None."""
        account, seq, kind, query, actor, at_us, digest, head, subject, *listed = row
        # If an entry has null in the column of ρ, or of the permission of releases without a finite
        # ε, it does not change that value, and its digest does not cover the column.
        end = NOT_IN_RHO if listed[2] is None else len(listed) - (listed[-1] is None)
        amounts: Amounts = tuple(listed[:end])
        self._seq += 1
        if seq != self._seq:
            return f"follows entry {self._seq - 1}: what lay between is missing"
        if (listed[2] is None) != (listed[3] is None):
            return "is counted in ρ by half"
        if listed[2] is None and listed[4] is not None:
            return "moves a permission and is not counted in ρ"
        if query is not None and len(query) != 16:
            return "names no query"
        if entry_digest(account, kind, query, actor, amounts, at_us, subject) != digest:
            return "is not what its digest was made of"
        self._head = next_head(self._head, digest)
        if head != self._head:
            return "does not follow from the head before it"
        if self._published and seq == self._published.seq and head != self._published.head:
            return "has another head than the one that was published"
        reason = self._count(kind, query, amounts, at_us, subject)
        return reason or self._check_rho(kind, actor)

    def _count(
        self, kind: int, query: bytes | None, amounts: Amounts, at_us: int, subject: bytes | None
    ) -> str | None:
        row, in_rho = self._account, len(amounts) > NOT_IN_RHO
        permission = amounts[len(NOTHING)] if len(amounts) > len(NOTHING) else None
        amounts = amounts[: len(NOTHING)] if in_rho else (*amounts, 0, 0)
        if permission is not None and kind not in (GENESIS, LIMIT_CHANGE):
            return "moves a permission and is no limit"
        if (self._seq == 1) != (kind == GENESIS):
            return "is a genesis, which comes first and once" if self._seq > 1 else "is no genesis"
        if kind in (CHARGE, RELEASE):
            if amounts[3] > 0 and not self._limit[4]:
                return "has no finite ε, which the account did not allow"
            self._charged = added(self._charged, amounts)
            self._leave_out(amounts, in_rho)
            if query is None and (reason := self._without_query(kind, amounts)):
                return reason
            if min(amounts) < 0 if kind == CHARGE else max(amounts) > 0:
                return "has an amount of the wrong sign"
        elif kind == GENESIS:
            expected = account_subject(row.rank, row.dataset_id, row.analyst_id, row.key_id)
            if subject is not None and subject != expected:
                return "was the genesis of an account for somebody or something else"
            self.opened_us, self._limit = at_us, (*amounts, permission or 0)
        elif kind == LIMIT_CHANGE:
            self._limit = added(self._limit, (*amounts, permission or 0))
        else:
            if self._frozen == (kind == FREEZE):
                return "changes nothing: that is how the account stood"
            self._frozen = int(kind == FREEZE)
            self._charged = added(self._charged, amounts)
            self._leave_out(amounts, in_rho)
            self.recharged = added(self.recharged, amounts)
            if min(amounts) < 0 or (kind == FREEZE and any(amounts)):
                return "has an amount of the wrong sign"
        if min(self._charged) < 0 or not admits(self._limit, self._charged, NOTHING):
            return "leaves the account charged beyond its limit, or below nothing"
        return None

    def _check_rho(self, kind: int, actor: int) -> str | None:
        """The contradiction between a limit in ρ, its δ_c and the charges, or None."""
        epsilon, _, rho, composition, *_ = self._limit
        if rho and self.uncounted > 0:
            return "leaves a limit in ρ beside charges that were not counted in ρ"
        if kind in (GENESIS, LIMIT_CHANGE):
            beyond = not holds(epsilon, composition, rho)
            self._beyond = beyond and (kind, actor, self._frozen) == (LIMIT_CHANGE, OPERATOR, 1)
            return BEYOND if beyond and not self._beyond else None
        if self._beyond:
            # The previous entry set a limit in ρ above the one that ε and δ_c allow. This entry
            # must unfreeze the account and charge so much that nothing fits until another limit is
            # set.
            self._beyond = False
            closed = kind == UNFREEZE and self._charged[3] and self._charged[2] == rho
            return None if closed else BEYOND
        return None

    def _leave_out(self, amounts: Amounts, in_rho: bool) -> None:
        """Adds up the ρ of what an entry charges, or gives back, without counting it."""
        if not in_rho:
            rho = pure_femto(abs(amounts[0]))
            self.uncounted += rho if amounts[0] > 0 else -rho

    def _without_query(self, kind: int, amounts: Amounts) -> str | None:
        """The contradiction in a charge that names no query, or None.

        It is the first charge of an account over all datasets, or the ρ of earlier charges.
        """
        if kind == CHARGE and self._account.rank == AccountRank.ANALYST and self._seq == 2:
            self.carried = amounts
            return None
        if kind == RELEASE or self._account.rank == AccountRank.ANALYST or any(amounts[:2]):
            return "belongs to no query"
        if amounts[3] or not 0 < amounts[2] == self.uncounted:
            return "is not the ρ of what was not counted before"
        self.uncounted = 0
        return None

    def compare(self) -> Bad | None:
        """The contradiction between the sums and the row of the account, or None."""
        id, published = self._account.id, self._published
        if published and self._seq < published.seq:
            return Bad("entry", _name(id, self._seq + 1), "was published and is missing")
        columns = (_a.seq, _a.head, *SUMS, *LIMITS, _a.frozen)
        summed = (self._seq, self._head, *self._charged, *self._limit, self._frozen)
        for column, value in zip(columns, summed, strict=True):
            if getattr(self._account, column.name) != value:
                reason = f"{column.name} is not what its entries add up to"
                return Bad("budget_account", f"account {id}", reason)
        if self._beyond:
            return Bad("entry", _name(id, self._seq), BEYOND)
        if self._account.epoch != EPOCH:
            return Bad("budget_account", f"account {id}", "belongs to another version's schema")
        return None


def added(sums: Amounts, amounts: Amounts) -> Amounts:
    """The sums after one more entry, measure by measure."""
    return tuple(map(add, sums, amounts))


def _empty(account: Row[Any]) -> Bad:
    return _of(account, Bad("budget_account", f"account {account.id}", "has no entries"))


def _name(account_id: int, seq: int) -> str:
    return f"account {account_id}, entry {seq}"
