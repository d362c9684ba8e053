"""The end of a freeze: an operator accepts that a ledger went backwards.

Accepting charges the amounts of the published heads again, so a restore gives no budget back.
A freeze and its end are entries without a user: their actor is 0, the operator.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account
from storage.errors import LedgerAlarm, StorageError
from storage.journal import audit
from storage.journal.layouts import EntryKind
from storage.ledger.accounts import ACCOUNTS, AccountRow
from storage.ledger.entries import Cause, change_account
from storage.ledger.freezing import OPERATOR, frozen_at

_a = budget_account.c
_FROZEN = ACCOUNTS.where(_a.frozen == 1).order_by(_a.rank, _a.id).with_for_update(of=budget_account)


class HeadsTooOld(StorageError):
    """The published heads do not reach beyond the backup, so later charges are unknown."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One account that takes charges again, and the amount that was charged to it again.

    ``dataset`` is None for an account over all datasets, ``analyst`` for the cap of a dataset.
    """

    account: int
    dataset: str | None
    analyst: str | None
    recharged: PrivacyLoss


def accept(database: Database, log: HeadsLog, *, heads_lost: bool = False) -> list[Accepted]:
    """Unfreeze every frozen account, with at least its published charges.

    Args:
        heads_lost: there are no heads from after the backup. Every frozen account is then charged
            up to its limit, because the charges in between are unknown.

    Raises: HeadsTooOld if ``log`` was not in use when the accounts were frozen.
    """
    log.refresh()

    def work(connection: Connection) -> list[Accepted]:
        rows = [AccountRow.of(row) for row in connection.execute(_FROZEN)]
        if not heads_lost and not frozen_at(connection, [row.id for row in rows]) <= log.marks:
            raise HeadsTooOld("the published heads do not reach beyond the restored backup")
        done, states = [], []
        for row in rows:
            charged, limit = row.account.charged, row.account.limit
            published = log.published.get(row.id)
            total = charged if published is None else _larger(charged, published.charged)
            if heads_lost:
                total = _larger(total, limit)
            more, raised = total - charged, _larger(limit, total) - limit
            states.append(_unfreeze(connection, row.id, total, more, raised))
            done.append(Accepted(row.id, row.dataset, row.analyst, more))
        if done:
            detail = {"accounts": len(done), "heads_lost": heads_lost}
            audit.record(connection, OPERATOR, "ledger.accept_rollback", "ledger", detail)
        present = set(connection.execute(select(_a.id)).scalars())
        gone = [state for id, state in sorted(log.published.items()) if id not in present]
        # Before the commit: a process that compares in between must not freeze the accounts again.
        # If the commit fails they stay frozen, and no published charge is lost.
        log.accept(states, gone, connection.execute(select(now_us())).scalar_one())
        return done

    return database.write(work)


def _unfreeze(
    connection: Connection, id: int, total: PrivacyLoss, more: PrivacyLoss, raised: PrivacyLoss
) -> Published:
    """Raise the account's limit by ``raised``, charge ``more``, ``total`` with it, and unfreeze."""
    at_us = connection.execute(select(now_us())).scalar_one()
    causes = [Cause(EntryKind.UNFREEZE, OPERATOR, at_us, more.amounts)]
    if any(raised.amounts):
        # The limit had been raised after what the database remembers.
        causes.insert(0, Cause(EntryKind.LIMIT_CHANGE, OPERATOR, at_us, raised.amounts))
    for cause in causes:
        entry = change_account(connection, id, cause)
        if entry is None:
            raise LedgerAlarm("a frozen account changed while it was being unfrozen")
        state = Published(id, entry["seq"], entry["head"], total)
    return state


def _larger(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(*map(max, left.amounts, right.amounts))
