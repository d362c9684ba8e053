"""Ends the freeze of accounts: an operator accepts that a ledger lost entries, as by a restore.

Each account is charged again what its published head shows beyond its row, so no budget is given
back. Entries of a freeze and of its end name no user: their actor is 0, the operator.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from accounting.account import Account, admits, counts_rho
from accounting.conversion import MOST_COMPOSITION_ATTO
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account
from storage.errors import LedgerAlarm, StorageError
from storage.journal.layouts import EntryKind
from storage.journal.streams import read_tips
from storage.ledger.accounts import ACCOUNTS, AccountRow
from storage.ledger.entries import NOTHING, Cause, change_account
from storage.ledger.freezing import OPERATOR, frozen_at, record_freeze

_a = budget_account.c
_FROZEN = ACCOUNTS.where(_a.frozen == 1).order_by(_a.rank, _a.id).with_for_update(of=budget_account)


class HeadsTooOld(StorageError):
    """The published heads do not reach beyond the backup, so later charges are unknown."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One account that takes charges again, and the amount that was charged to it again.

    ``dataset`` is None for an account of one analyst over all datasets. ``analyst`` is None for the
    account of all analysts on one dataset. ``key_id`` is empty unless a key has the account.
    """

    account: int
    dataset: str | None
    analyst: str | None
    key_id: str
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
            total = _total(row.account, log.published.get(row.id), heads_lost)
            states.append(_unfreeze(connection, row, total))
            more = total - row.account.charged
            done.append(Accepted(row.id, row.dataset, row.analyst, row.key_id, more))
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


def _total(account: Account, published: Published | None, heads_lost: bool) -> PrivacyLoss:
    """The sum of all charges of a frozen account after it is unfrozen."""
    total = account.charged
    if published is not None:
        total = _larger(total, published.charged)
        if not published.in_rho:
            # ρ of several charges is at most that of one charge of the same ε.
            lost = total.epsilon_nano - account.charged.epsilon_nano
            total += PrivacyLoss(0, 0, pure_femto(lost))
    if heads_lost:
        limit = account.limit
        lost = max(0, limit.epsilon_nano - total.epsilon_nano)
        # Whichever of ε and ρ admitted the lost charges, their ρ is at most the larger of the two.
        rho = max(limit.rho_femto, total.rho_femto + pure_femto(lost))
        # One of them may have had no finite ε, if the account allows that.
        worst = PrivacyLoss(limit.epsilon_nano, limit.delta_atto, rho, int(limit.gaussian))
        total = _larger(total, worst)
    if not counts_rho(account.limit.epsilon_nano):
        # Only ε and δ are counted.
        charged = account.charged
        return replace(total, rho_femto=charged.rho_femto, unpriced=charged.unpriced)
    return total


def _unfreeze(connection: Connection, row: AccountRow, total: PrivacyLoss) -> Published:
    """Charge a frozen account up to ``total``, raise its limit if that exceeds it, unfreeze it."""
    at_us = connection.execute(select(now_us())).scalar_one()
    more = total - row.account.charged
    unfreeze = Cause(EntryKind.UNFREEZE, OPERATOR, at_us, more.amounts)
    causes = [unfreeze.counted(counts_rho(row.account.limit.epsilon_nano))]
    limit = row.account.limit
    if not admits(limit.amounts, total.amounts, NOTHING):
        # The published charges exceed the limit in the database, so a raise of the limit was lost.
        epsilon = max(0, total.epsilon_nano - limit.epsilon_nano)
        delta = max(0, total.delta_atto - limit.delta_atto)
        rho = max(0, total.rho_femto - limit.rho_femto) if total.unpriced else 0
        # The δ_c of a limit in ρ that was lost is unknown, so the largest that exists is stated.
        composition = MOST_COMPOSITION_ATTO - limit.composition_atto if rho else 0
        raised = (epsilon, delta, rho, composition, 0)
        causes.insert(0, Cause(EntryKind.LIMIT_CHANGE, OPERATOR, at_us, raised))
    for cause in causes:
        entry = change_account(connection, row.id, cause)
        if entry is None:
            raise LedgerAlarm("a frozen account changed while it was being unfrozen")
        state = Published(row.id, entry["seq"], entry["head"], total)
    return state


def _larger(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(*map(max, left.amounts, right.amounts))
