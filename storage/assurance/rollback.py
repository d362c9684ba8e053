"""A ledger that went backwards: it is frozen until an operator accepts what was lost.

Accepting charges again what the published heads say was charged, so a restore gives nothing back.
Both the freeze and its end are entries, made with nobody's key: their actor is 0, the operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, users
from storage.errors import LedgerAlarm, StorageError
from storage.journal import audit
from storage.journal.layouts import EntryKind
from storage.ledger.entries import Cause, add_entries, change_account
from storage.ledger.freezing import OPERATOR, frozen_at

_a = budget_account.c
_FROZEN = (
    select(budget_account, dataset.c.name.label("dataset"), users.c.name.label("analyst"))
    .outerjoin(dataset, dataset.c.id == _a.dataset_id)
    .outerjoin(users, users.c.id == _a.analyst_id)
    .where(_a.frozen == 1)
    .order_by(_a.rank, _a.id)
    .with_for_update(of=budget_account)
)


class HeadsTooOld(StorageError):
    """The published heads do not reach beyond the backup: what was charged later is unknown."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One account that takes charges again, and what was charged to it anew.

    ``dataset`` is None where it ranges over all of them, ``analyst`` where it is a dataset's cap.
    """

    account: int
    dataset: str | None
    analyst: str | None
    recharged: PrivacyLoss


def accept(database: Database, log: HeadsLog, *, heads_lost: bool = False) -> list[Accepted]:
    """Unfreeze every frozen account, charged at least what was published of it.

    Args:
        heads_lost: there are no heads from after the backup. Every frozen account is then charged
            up to its limit, because nobody knows what was charged in between.

    Raises: HeadsTooOld when ``log`` was not in use when the accounts were frozen.
    """
    log.refresh()

    def work(connection: Connection) -> list[Accepted]:
        rows = connection.execute(_FROZEN).all()
        if not heads_lost and not frozen_at(connection, [row.id for row in rows]) <= log.marks:
            raise HeadsTooOld("the published heads do not reach beyond the restored backup")
        done, states = [], []
        for row in rows:
            charged = PrivacyLoss(row.charged_eps_n, row.charged_delta_a)
            limit = PrivacyLoss(row.lim_eps_n, row.lim_delta_a)
            published = log.published.get(row.id)
            wanted = charged if published is None else _larger(charged, published.charged)
            if heads_lost:
                wanted = _larger(wanted, limit)
            states.append(_unfreeze(connection, row.id, charged, limit, wanted))
            done.append(Accepted(row.id, row.dataset, row.analyst, wanted - charged))
        if done:
            detail = {"accounts": len(done), "heads_lost": heads_lost}
            audit.record(connection, OPERATOR, "ledger.accept_rollback", "ledger", detail)
        known = set(connection.execute(select(_a.id)).scalars())
        gone = [state for id, state in sorted(log.published.items()) if id not in known]
        # Before the commit: whoever compares in between must not freeze the accounts once more.
        # Without the commit they stay frozen, and nothing published is charged less for it.
        log.accept(states, gone, connection.execute(select(now_us())).scalar_one())
        return done

    return database.write(work)


def _unfreeze(
    connection: Connection, id: int, charged: PrivacyLoss, limit: PrivacyLoss, wanted: PrivacyLoss
) -> Published:
    """Charge the account up to ``wanted``, under a limit that holds it, and let it go on."""
    at_us = connection.execute(select(now_us())).scalar_one()
    changes = []
    raised = _larger(limit, wanted) - limit
    if raised != PrivacyLoss(0):
        # The limit had been raised after what the database remembers.
        cause = Cause(EntryKind.LIMIT_CHANGE, OPERATOR, at_us, raised.amounts)
        changes.append(change_account(connection, id, cause))
    more = wanted - charged
    cause = Cause(EntryKind.UNFREEZE, OPERATOR, at_us, more.amounts)
    changes.append(change_account(connection, id, cause))
    made = [change for change in changes if change is not None]
    if len(made) < len(changes):
        raise LedgerAlarm("a frozen account changed while it was being unfrozen")
    add_entries(connection, made)
    last = made[-1]
    return Published(id, last.entry["seq"], last.entry["head"], last.charged)


def _larger(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(
        max(left.epsilon_nano, right.epsilon_nano), max(left.delta_atto, right.delta_atto)
    )
