"""Ends the freeze of accounts: an operator accepts that a ledger lost entries, as by a restore.

Each account is charged again what its published head shows beyond its row, so no budget is given
back. Entries of a freeze and of its end name no user: their actor is 0, the operator.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account
from storage.errors import LedgerAlarm, StorageError
from storage.journal.layouts import EntryKind
from storage.journal.streams import read_tips
from storage.ledger.accounts import ACCOUNTS, AccountRow
from storage.ledger.entries import Cause, change_account
from storage.ledger.freezing import OPERATOR, frozen_at, record_freeze

_a = budget_account.c
_FROZEN = ACCOUNTS.where(_a.frozen == 1).order_by(_a.rank, _a.id).with_for_update(of=budget_account)


class HeadsTooOld(StorageError):
    """The published heads do not reach beyond the backup, so later charges are unknown."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One account that takes charges again, and the amount that was charged to it again.

    ``dataset`` is None for an account of one analyst over all datasets. ``analyst`` is None for the
    account of all analysts on one dataset.
    """

    account: int
    dataset: str | None
    analyst: str | None
    recharged: PrivacyLoss


def accept(database: Database, log: HeadsLog, *, heads_lost: bool = False) -> list[Accepted]:
    """Unfreeze every frozen account after charging it at least its published charges.

    Args:
        heads_lost: True if there are no heads from after the backup. Every frozen account is then
            charged up to its limit, because the charges after the backup are unknown.

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
            accounts, detail = [one.account for one in done], {"heads_lost": heads_lost}
            record_freeze(connection, "ledger.accept_rollback", accounts, detail)
        present = set(connection.execute(select(_a.id)).scalars())
        gone = [state for id, state in sorted(log.published.items()) if id not in present]
        # The file is written before the commit, so that no process compares the unfrozen accounts
        # with older lines and freezes them again. If the commit fails, the accounts stay frozen,
        # and no published charge is lost.
        streams = {tip.stream: (tip.seq, tip.head) for tip in read_tips(connection)}
        at_us = connection.execute(select(now_us())).scalar_one()
        log.accept(states, gone, at_us, streams if done else None)
        return done

    return database.write(work)


def _unfreeze(
    connection: Connection, id: int, total: PrivacyLoss, more: PrivacyLoss, raised: PrivacyLoss
) -> Published:
    """Raise an account's limit by ``raised``, charge it ``more``, and unfreeze it.

    ``total`` is the sum of all its charges afterwards, which the returned state has.
    """
    at_us = connection.execute(select(now_us())).scalar_one()
    causes = [Cause(EntryKind.UNFREEZE, OPERATOR, at_us, more.amounts)]
    if any(raised.amounts):
        # The published charges exceed the limit in the database, so a raise of the limit was lost.
        causes.insert(0, Cause(EntryKind.LIMIT_CHANGE, OPERATOR, at_us, raised.amounts))
    for cause in causes:
        entry = change_account(connection, id, cause)
        if entry is None:
            raise LedgerAlarm("a frozen account changed while it was being unfrozen")
        state = Published(id, entry["seq"], entry["head"], total)
    return state


def _larger(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(*map(max, left.amounts, right.amounts))
