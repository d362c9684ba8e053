"""Reserving queries on SQLite: the charge, before anything is opened.

A batch holds the write lock, so what its accounts have left is read once and followed from member
to member: one that is refused writes nothing. In the end one conditional UPDATE an account charges
it for all of them, and fails as a whole if a single unit does not fit. PostgreSQL, where a row is
locked and not the database, does this inside ``reserve_queries``, a function of the schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Dialect, and_, bindparam, insert, or_, select

from accounting.account import Account, AccountRank
from accounting.errors import AccountFrozen, AccountingError, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.database.expressions import insert_once
from storage.database.sqlite import clock_us
from storage.database.statements import Hot
from storage.database.tables import budget_account, dataset, entry, query
from storage.errors import LedgerAlarm, NoRecords, NotFound, StorageError
from storage.journal.layouts import EntryKind, entry_digest, next_head
from storage.ledger.entries import CHARGES
from storage.ledger.requests import Reservation, Reserve

_a = budget_account.c
_analyst = bindparam("analyst", type_=BigInteger)
_dataset = bindparam("dataset", type_=BigInteger)

#: The accounts a query is charged to, in lock order: narrow before wide.
ACCOUNTS = Hot(
    select(
        *(_a.id, _a.rank, _a.seq, _a.head, _a.frozen),
        *(_a.lim_eps_n, _a.lim_delta_a, _a.charged_eps_n, _a.charged_delta_a),
    )
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
    insert_once("sqlite", query, "analyst_id", "idem_key").values(
        {
            name: bindparam(name)
            for name in (
                *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash"),
                *("request", "eps_n", "delta_a", "state", "attempt", "attempt_us", "lease_until"),
                "created_us",
            )
        }
    )
)
KNOWN = Hot(
    select(query.c.id).where(
        query.c.analyst_id == _analyst, query.c.idem_key == bindparam("idem_key")
    )
)
CHARGE = Hot(CHARGES)
ENTRY = Hot(insert(entry))

Refusal = AccountingError | StorageError
#: Without these two accounts a dataset cannot be asked.
REQUIRED = {AccountRank.ANALYST_ON_DATASET, AccountRank.DATASET}


@dataclass(slots=True)
class Standing:
    """An account as it was read under the write lock, and what the batch has added since."""

    id: int
    rank: int
    seq: int
    head: bytes
    frozen: int
    lim_eps: int
    lim_delta: int
    charged_eps: int
    charged_delta: int
    entries: list[dict[str, Any]] = field(default_factory=list)

    def refusal(self, charge: PrivacyLoss) -> Refusal | None:
        fits = self.charged_eps + charge.epsilon_nano <= self.lim_eps
        if not self.frozen and fits and self.charged_delta + charge.delta_atto <= self.lim_delta:
            return None
        limits = self.lim_eps, self.lim_delta
        return refusal(
            self.rank, self.frozen, *limits, self.charged_eps, self.charged_delta, charge=charge
        )

    def add(self, request: Reserve, subject: bytes, at_us: int) -> None:
        """Charge the query here; ``Reserving.charge`` writes it down."""
        eps, delta = request.charge.epsilon_nano, request.charge.delta_atto
        digest = entry_digest(
            self.id,
            EntryKind.CHARGE,
            request.query_id,
            request.analyst_id,
            eps,
            delta,
            at_us,
            subject,
        )
        self.charged_eps += eps
        self.charged_delta += delta
        self.head = next_head(self.head, digest)
        self.entries.append(
            {
                "account_id": self.id,
                "seq": self.seq + len(self.entries) + 1,
                "kind": int(EntryKind.CHARGE),
                "query_id": request.query_id.bytes,
                "actor": request.analyst_id,
                "d_eps_n": eps,
                "d_delta_a": delta,
                "at_us": at_us,
                "digest": digest,
                "head": self.head,
                "subject": subject,
            }
        )


class Reserving:
    """The reserves of one transaction, which holds the write lock: what they share is read once."""

    def __init__(self, driver: Any, dialect: Dialect, lease_us: int) -> None:
        self._driver, self._dialect, self._lease_us = driver, dialect, lease_us
        self._accounts: dict[int, Standing] = {}
        self._charged: dict[tuple[int, int], list[Standing]] = {}
        self._versions: dict[int, int] = {}

    def reserve(self, request: Reserve) -> Reservation | Refusal | None:
        """Reserve a new query; None when its key is known already. ``charge`` is still to follow.

        Returns a refusal instead of raising it: BudgetExhausted, CapExhausted, AccountFrozen;
        NoRecords when the dataset was withdrawn; NotFound when there is no account.
        """
        accounts = self._accounts_of(request.dataset_id, request.analyst_id)
        if not {account.rank for account in accounts} >= REQUIRED:
            return NotFound("the analyst has no account for this dataset")
        version = self._version_of(request.dataset_id)
        refused = next((why for a in accounts if (why := a.refusal(request.charge))), None)
        if refused is None and version == 0:
            refused = NoRecords("the dataset has no records to query")
        if refused is not None:
            return None if self._is_known(request) else refused
        at_us = clock_us()
        if not self._insert(request, version, at_us):
            return None
        subject, receipt, remaining = request.subject, b"", request.charge
        for account in accounts:
            account.add(request, subject, at_us)
            if account.rank == AccountRank.ANALYST_ON_DATASET:
                receipt = account.head
                remaining = PrivacyLoss(
                    account.lim_eps - account.charged_eps, account.lim_delta - account.charged_delta
                )
        return Reservation(request.query_id, 1, version, at_us, receipt, remaining)

    def charge(self) -> None:
        """Charge every account for all that were reserved; to be called before the commit.

        Raises: LedgerAlarm when the guard refuses what was found to fit.
        """
        for account in self._accounts.values():
            entries = account.entries
            if not entries:
                continue
            changed = CHARGE.rows(
                self._driver,
                self._dialect,
                {
                    "account": account.id,
                    "seen": account.seq,
                    "last": account.seq + len(entries),
                    "linked": account.head,
                    "eps": sum(one["d_eps_n"] for one in entries),
                    "delta": sum(one["d_delta_a"] for one in entries),
                },
            )
            if not changed:
                raise LedgerAlarm("a guard refused what fits")
            ENTRY.insert_all(self._driver, self._dialect, entries)

    def _accounts_of(self, dataset_id: int, analyst_id: int) -> list[Standing]:
        key = (dataset_id, analyst_id)
        if key not in self._charged:
            values = {"dataset": dataset_id, "analyst": analyst_id}
            rows = ACCOUNTS.rows(self._driver, self._dialect, values)
            # The cap of a dataset is charged by all of its analysts: one standing for all of them.
            self._charged[key] = [self._accounts.setdefault(r.id, Standing(*r)) for r in rows]
        return self._charged[key]

    def _version_of(self, dataset_id: int) -> int:
        if dataset_id not in self._versions:
            rows = VERSION.rows(self._driver, self._dialect, {"dataset": dataset_id})
            self._versions[dataset_id] = int(rows[0][0])
        return self._versions[dataset_id]

    def _is_known(self, request: Reserve) -> bool:
        values = {"analyst": request.analyst_id, "idem_key": request.stored_key}
        return bool(KNOWN.rows(self._driver, self._dialect, values))

    def _insert(self, request: Reserve, version: int, at_us: int) -> bool:
        values = {
            "id": request.query_id.bytes,
            "analyst_id": request.analyst_id,
            "dataset_id": request.dataset_id,
            "dataset_version": version,
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
        return NEW_QUERY.changes(self._driver, self._dialect, values) == 1


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
