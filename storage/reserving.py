"""Reserving queries on SQLite: the charge, before anything is opened.

The members of a batch run one after the other inside one transaction, each in a savepoint of its
own: one that is refused leaves nothing behind and the others stand. PostgreSQL runs the same
statements inside ``reserve_queries``, a function of the schema.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Dialect, and_, bindparam, insert, or_, select, update

from accounting.account import Account, AccountRank
from accounting.errors import AccountFrozen, AccountingError, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage import statements
from storage.chain import EntryKind, entry_digest
from storage.entries import CHANGES
from storage.errors import LedgerAlarm, NoRecords, NotFound, StorageError
from storage.expressions import insert_once
from storage.reservation import Reservation, Reserve
from storage.sqlite import clock_us
from storage.statements import Hot
from storage.tables import budget_account, dataset, entry, query

_a = budget_account.c
_analyst = bindparam("analyst", type_=BigInteger)
_dataset = bindparam("dataset", type_=BigInteger)

#: The accounts a query is charged to, in lock order: narrow before wide.
ACCOUNTS = Hot(
    select(_a.id, _a.rank)
    .where(
        or_(
            and_(
                _a.rank == int(AccountRank.ANALYST_ON_DATASET),
                _a.dataset_id == _dataset,
                _a.analyst_id == _analyst,
            ),
            and_(
                _a.rank == int(AccountRank.ANALYST), _a.dataset_id == 0, _a.analyst_id == _analyst
            ),
            and_(
                _a.rank == int(AccountRank.DATASET), _a.dataset_id == _dataset, _a.analyst_id == 0
            ),
        )
    )
    .order_by(_a.rank, _a.id)
)
VERSION = Hot(select(dataset.c.version).where(dataset.c.id == bindparam("dataset")))
NEW_QUERY = Hot(
    insert_once("sqlite", query, "analyst_id", "idem_key")
    .values(
        {
            name: bindparam(name)
            for name in (
                *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash"),
                *("request", "eps_n", "delta_a", "state", "attempt", "attempt_us", "lease_until"),
                "created_us",
            )
        }
    )
    .returning(query.c.id)
)
CHARGE = Hot(CHANGES[EntryKind.CHARGE])
ENTRY = Hot(insert(entry))
STANDING = Hot(
    select(_a.frozen, _a.lim_eps_n, _a.lim_delta_a, _a.charged_eps_n, _a.charged_delta_a).where(
        _a.id == bindparam("account")
    )
)
MOVE = Hot(
    update(query)
    .where(query.c.id == bindparam("query"))
    .values(dataset_version=bindparam("current"))
)

Refusal = AccountingError | StorageError


class Reserving:
    """The reserves of one transaction, which holds the write lock: what they share is read once."""

    def __init__(self, driver: Any, dialect: Dialect, lease_us: int) -> None:
        self._driver, self._dialect, self._lease_us = driver, dialect, lease_us
        self._accounts: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._versions: dict[int, int] = {}

    def reserve(self, request: Reserve) -> Reservation | Refusal | None:
        """Charge a new query to every account it falls under; None when its key is known already.

        Returns a refusal instead of raising it: BudgetExhausted, CapExhausted, AccountFrozen;
        NoRecords when the dataset was withdrawn; NotFound when there is no account.
        """
        statements.executed(self._driver, "SAVEPOINT member")
        outcome = self._charge(request)
        if not isinstance(outcome, Reservation):
            statements.executed(self._driver, "ROLLBACK TO member")
        statements.executed(self._driver, "RELEASE member")
        return outcome

    def _charge(self, request: Reserve) -> Reservation | Refusal | None:
        accounts = self._accounts_of(request.dataset_id, request.analyst_id)
        ranks = {rank for _, rank in accounts}
        if not ranks >= {AccountRank.ANALYST_ON_DATASET, AccountRank.DATASET}:
            return NotFound("the analyst has no account for this dataset")
        at_us = clock_us()
        if not self._insert(request, at_us):
            return None
        charge, id = request.charge, request.query_id.bytes
        eps, delta = charge.epsilon_nano, charge.delta_atto
        receipt, remaining, subject = b"", charge, request.subject
        for account, rank in accounts:
            digest = entry_digest(
                account,
                EntryKind.CHARGE,
                request.query_id,
                request.analyst_id,
                eps,
                delta,
                at_us,
                subject,
            )
            values = {"account": account, "digest": digest, "eps": eps, "delta": delta}
            changed = CHARGE.rows(self._driver, self._dialect, values)
            if not changed:
                return self._refusal(account, rank, charge)
            seq, head, lim_eps, lim_delta, charged_eps, charged_delta = changed[0]
            ENTRY.run_many(
                self._driver,
                self._dialect,
                [
                    {
                        "account_id": account,
                        "seq": seq,
                        "kind": 1,
                        "query_id": id,
                        "actor": request.analyst_id,
                        "d_eps_n": eps,
                        "d_delta_a": delta,
                        "at_us": at_us,
                        "digest": digest,
                        "head": head,
                        "subject": subject,
                    }
                ],
            )
            if rank == AccountRank.ANALYST_ON_DATASET:
                receipt = head
                remaining = PrivacyLoss(lim_eps - charged_eps, lim_delta - charged_delta)
        version = self._version_of(request.dataset_id)
        if version == 0:
            return NoRecords("the dataset has no records to query")
        if version != request.version:
            values = {"query": id, "current": version}
            MOVE.run_many(self._driver, self._dialect, [values])
        return Reservation(request.query_id, 1, version, at_us, receipt, remaining)

    def _accounts_of(self, dataset_id: int, analyst_id: int) -> list[tuple[int, int]]:
        key = (dataset_id, analyst_id)
        if key not in self._accounts:
            values = {"dataset": dataset_id, "analyst": analyst_id}
            rows = ACCOUNTS.rows(self._driver, self._dialect, values)
            self._accounts[key] = [(id, rank) for id, rank in rows]
        return self._accounts[key]

    def _version_of(self, dataset_id: int) -> int:
        if dataset_id not in self._versions:
            rows = VERSION.rows(self._driver, self._dialect, {"dataset": dataset_id})
            self._versions[dataset_id] = int(rows[0][0])
        return self._versions[dataset_id]

    def _insert(self, request: Reserve, at_us: int) -> bool:
        values = {
            "id": request.query_id.bytes,
            "analyst_id": request.analyst_id,
            "dataset_id": request.dataset_id,
            "dataset_version": request.version,
            "idem_key": request.stored_key,
            "body_hash": request.body_hash,
            "request": request.request,
            "eps_n": request.charge.epsilon_nano,
            "delta_a": request.charge.delta_atto,
            "state": 0,
            "attempt": 1,
            "attempt_us": at_us,
            "lease_until": at_us + self._lease_us,
            "created_us": at_us,
        }
        return bool(NEW_QUERY.rows(self._driver, self._dialect, values))

    def _refusal(self, account: int, rank: int, charge: PrivacyLoss) -> Refusal:
        (row,) = STANDING.rows(self._driver, self._dialect, {"account": account})
        return refusal(rank, *row, charge=charge)


def refusal(
    rank: int,
    frozen: int,
    lim_eps: int,
    lim_delta: int,
    charged_eps: int,
    charged_delta: int,
    *,
    charge: PrivacyLoss,
) -> Refusal:
    """Why a guard refused, from what stands in the row now; the guard itself has decided."""
    if frozen:
        return AccountFrozen("an account takes no new charge for now")
    account = Account(PrivacyLoss(lim_eps, lim_delta), PrivacyLoss(charged_eps, charged_delta))
    if account.admits(charge):
        return LedgerAlarm("a guard refused what fits")
    if rank == AccountRank.DATASET:
        return CapExhausted(charge=charge)
    return BudgetExhausted(charge=charge, remaining=account.remaining)
