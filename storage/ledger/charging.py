"""Reserving queries: the charge is written before any records are opened.

Danger: the balance of an account must be read under a lock: FOR NO KEY UPDATE on PostgreSQL, the
write lock on SQLite. Each query of the batch reduces this balance in memory. In the end one
conditional UPDATE per account writes their sum, and fails as a whole if the sum does not fit.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import add, itemgetter, sub
from typing import Any

from sqlalchemy import Connection, select

from accounting.account import counts_rho
from storage.database.expressions import now_us
from storage.database.failures import Again
from storage.database.statements import Each, InsertEach
from storage.database.tables import EPOCH, budget_account, dataset, query
from storage.errors import Busy, LedgerAlarm, NoRecords, NotFound, NotOpen
from storage.journal.facts import Fact, accepted
from storage.journal.layouts import salted_digest
from storage.journal.streams import record
from storage.ledger.accounts import (
    BALANCE,
    AccountBalance,
    AccountKey,
    Refusal,
    account_of_key,
    charged_accounts,
    has_key,
    refusal_of,
)
from storage.ledger.entries import CHARGE, ENTRIES, PRICE, Linking, SharedEntry, charge_of
from storage.ledger.requests import QueryState, Reservation, Reserve

#: A function that sends its writes inside a ``pipelined`` block. It returns a second function,
#: which checks the results of the writes after the block.
Write = Callable[[], Callable[[], None]]

_a, _d, _q = budget_account.c, dataset.c, query.c
#: The columns that identify an account, which are the fields of an ``AccountKey``.
_KEY = tuple(_a[name] for name in AccountKey._fields)

#: Locks the accounts of a whole batch in order of rank and id, so two batches cannot deadlock.
ACCOUNTS = Each(
    _KEY,
    lambda each: (
        select(_a.id, *_KEY, _a.seq, _a.head, _a.epoch, *BALANCE)
        .where(has_key(budget_account, AccountKey(*(getattr(each, c.name) for c in _KEY))))
        .order_by(_a.rank, _a.id)
        .with_for_update(key_share=True, of=budget_account)
    ),
)
#: Reads the current version of each dataset. Danger: the account of all analysts on the dataset
#: must be locked first. Publishing or withdrawing a version locks that account too, so the version
#: cannot change before the commit.
VERSIONS = Each(
    (_d.id,),
    lambda each: select(_d.id, _d.version, now_us().label("now")).where(_d.id == each.id),
)
KNOWN = Each(
    (_q.analyst_id, _q.idem_key),
    lambda each: select(_q.analyst_id, _q.idem_key).where(
        _q.analyst_id == each.analyst_id, _q.idem_key == each.idem_key
    ),
)
_NEW = (
    *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash", "request"),
    *("form", "salt", *PRICE, "limited_key", "state"),
    *("attempt", "attempt_us", "lease_until", "created_us"),
)
NEW_QUERIES = InsertEach(query, _NEW, key=("analyst_id", "idem_key"))


class _Charging(Linking):
    """A locked account, and the charges of this batch to it."""

    def __init__(self, row: Any) -> None:
        super().__init__(row)
        if row.epoch != EPOCH:
            raise Busy("a later version has taken over this ledger; this process must stop")
        #: The balance of the account after the charges that this batch has made so far.
        self.balance = AccountBalance.of(row.rank, row[len(_KEY) + 4 :])
        self._sums = self.balance.sums
        self.key = AccountKey._make(row[1 : len(_KEY) + 1])
        self.counts_rho = counts_rho(self.balance.limits[0])

    def add(self, entry: SharedEntry) -> None:
        super().add(entry)
        sums = tuple(map(add, self.balance.sums, entry.amounts))
        self.balance = AccountBalance(*self.balance[:-1], sums)

    @property
    def values(self) -> tuple[Any, ...]:
        """The parameters of the UPDATE ``CHARGE`` that covers all charges of this batch."""
        moved = map(sub, self.balance.sums, self._sums)
        return self.id, self.seq - len(self.entries), self.head, self.seq, *moved


@dataclass
class _Batch:
    """The reserves of one transaction, and the rows that they share."""

    accounts: dict[AccountKey, _Charging]
    #: For each dataset id: a row of the id, the current version of its records, and the moment of
    #: this transaction in microseconds.
    versions: dict[int, Any]
    #: The analyst id and idempotency key of each query that exists, because a second request under
    #: the same key is not charged.
    keys: set[tuple[int, str]]
    lease_us: int
    #: 32 random bytes per request, joined. They salt the digests of private values in the journal,
    #: so that nobody can confirm a guess of such a value.
    salts: bytes
    #: For each pair of a dataset and an analyst, the accounts that the analyst's queries on the
    #: dataset are charged to, in the order of locking. None stands for an account that does not
    #: exist.
    pairs: dict[tuple[int, int], Sequence[_Charging | None]] = field(default_factory=dict)
    queries: list[dict[str, Any]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def reserve(self, request: Reserve) -> Reservation | Refusal | None:
        """Reserves a new query; returns None if a query with its idempotency key exists.

        Returns a refusal instead of raising it: BudgetExhausted, AllowanceEnded, CapExhausted,
        AccountFrozen; NoRecords when the dataset was withdrawn; NotFound when there is no account
        of the analyst, or none of a key with a limit; NotOpen when another version than that of the
        request was published.
        """
        key = (request.analyst_id, request.stored_key)
        if key in self.keys:
            return None
        own, overall, cap = self._accounts_of(request.dataset_id, request.analyst_id)
        if own is None or cap is None:
            return NotFound("the analyst has no account for this dataset")
        accounts = [own, cap] if overall is None else [own, overall, cap]
        if request.limited_key is not None:
            limited = self.accounts.get(account_of_key(request.analyst_id, request.limited_key))
            if limited is None:
                return NotFound("the key has no account")
            accounts.insert(0, limited)
        # Each account is checked as of the moment of this transaction, and not of the earlier
        # look-up, because the account may end between the two.
        _, version, at_us = self.versions[request.dataset_id]
        refusal = refusal_of([account.balance for account in accounts], request.charge, at_us)
        if refusal is not None:
            return refusal
        if version == 0:
            return NoRecords("the dataset has no records to query")
        if request.version not in (None, version):
            return NotOpen("a new version of the records was published meanwhile")
        self.keys.add(key)
        row = self._row(request, key[1], version, at_us)
        self.queries.append(row)
        cause = charge_of(row, at_us)
        # One object holds the shared fields of the entries for all accounts that count in ρ, and
        # one for all others. Making small objects takes most of the time of a charge.
        entries: dict[bool, SharedEntry] = {}
        for account in accounts:
            entry = entries.get(account.counts_rho)
            if entry is None:
                entry = SharedEntry(cause.counted(account.counts_rho))
                entries[account.counts_rho] = entry
            account.add(entry)
        assert cause.subject is not None, "a charge has the digest of its request"
        digest = salted_digest(row["salt"], cause.subject)
        self.facts.append(accepted(row, cause.amounts, digest))
        rest, has_rho = own.balance.remaining, own.balance.has_rho
        return Reservation(request.query_id, 1, version, at_us, own.head, rest, has_rho)

    def _accounts_of(self, dataset_id: int, analyst_id: int) -> Sequence[_Charging | None]:
        pair = (dataset_id, analyst_id)
        accounts = self.pairs.get(pair)
        if accounts is None:
            accounts = self.pairs[pair] = [*map(self.accounts.get, charged_accounts(*pair))]
        return accounts

    def _row(self, request: Reserve, key: str, version: int, at_us: int) -> dict[str, Any]:
        return {
            "id": request.query_id,
            "analyst_id": request.analyst_id,
            "dataset_id": request.dataset_id,
            "dataset_version": version,
            "idem_key": key,
            "body_hash": request.body_hash,
            "request": request.request,
            "form": request.form,
            "salt": self.salts[32 * len(self.queries) : 32 * len(self.queries) + 32],
            **dict(zip(PRICE, request.charge.amounts, strict=True)),
            "limited_key": request.limited_key,
            "state": int(QueryState.RUNNING),
            "attempt": 1,
            "attempt_us": at_us,
            "lease_until": at_us + self.lease_us,
            "created_us": at_us,
        }


def reserve_all(
    connection: Connection, requests: Sequence[Reserve], lease_us: int
) -> Callable[[], tuple[list[Reservation | Refusal | None], Write]]:
    """Locks the accounts of the requests, and reads what decides about them.

    Returns a function for after ``pipelined``: it reserves every new query that fits, and returns
    one outcome per request, in their order, and the function that writes them. The outcome is None
    if a query with the idempotency key exists.
    """
    pairs = {(request.dataset_id, request.analyst_id) for request in requests}
    keys = {key for pair in pairs for key in charged_accounts(*pair)}
    keys |= {
        account_of_key(request.analyst_id, request.limited_key)
        for request in requests
        if request.limited_key is not None
    }
    datasets = {dataset_id for dataset_id, _ in pairs}
    own = [(request.analyst_id, request.key) for request in requests if request.key is not None]
    locked = ACCOUNTS.of_each(connection, sorted(keys))
    versions = VERSIONS.of_each(connection, [(id,) for id in datasets])
    existing = KNOWN.of_each(connection, own)

    def decide() -> tuple[list[Reservation | Refusal | None], Write]:
        batch = _Batch(
            {account.key: account for account in map(_Charging, locked())},
            {row.id: row for row in versions()},
            {tuple(row) for row in existing()},
            lease_us,
            os.urandom(32 * len(requests)),
        )
        outcomes = [batch.reserve(request) for request in requests]
        if batch.facts:
            record(connection, *batch.facts)
        return outcomes, partial(_write, connection, batch)

    return decide


def _write(connection: Connection, batch: _Batch) -> Callable[[], None]:
    """Writes the queries of a batch and their charges.

    Returns a function that checks the results; call it after ``pipelined`` ends. It raises:
    LedgerAlarm if the guard refuses a sum of charges that fits the balance; Again if another
    process has inserted a query with one of the keys meanwhile.
    """
    charged = [account for account in batch.accounts.values() if account.entries]
    # Sorted by key: concurrent batches insert in one order and cannot deadlock.
    rows = sorted(batch.queries, key=lambda row: (row["analyst_id"], row["idem_key"]))
    inserted = NEW_QUERIES.insert(connection, list(map(itemgetter(*_NEW), rows)))
    changed = CHARGE.of_each(connection, [account.values for account in charged])
    ENTRIES.insert(connection, [row for account in charged for row in account.entries])

    def check() -> None:
        if inserted() != len(rows):
            raise Again
        if len(changed()) != len(charged):
            raise LedgerAlarm("a guard refused what fits")

    return check
