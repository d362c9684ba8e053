"""Ends the freeze of accounts: an operator accepts that a ledger lost entries, as by a restore.

Each account is charged again what its published head shows beyond its row, so no budget is given
back. Entries of a freeze and of its end name no user: their actor is 0, the operator.
"""

from dataclasses import dataclass, replace
from itertools import zip_longest

from sqlalchemy import Connection, select

from accounting.account import Limit, admits, counts_rho
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.expressions import read_now
from storage.database.tables import budget_account
from storage.errors import LedgerAlarm, StorageError
from storage.journal.layouts import EntryKind
from storage.journal.streams import read_tips
from storage.ledger.accounts import ACCOUNTS, AccountRow
from storage.ledger.entries import NOTHING, Cause, change_account
from storage.ledger.freezing import OPERATOR, frozen_at, record_freeze
from storage.ledger.limits import rho_to_fill

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
            state = _unfreeze(connection, row, log.published.get(row.id), heads_lost)
            recharged = state.charged - row.account.charged
            states.append(state)
            done.append(Accepted(row.id, row.dataset, row.analyst, row.key_id, recharged))
        if done:
            accounts, detail = [one.account for one in done], {"heads_lost": heads_lost}
            record_freeze(connection, "ledger.accept_rollback", accounts, detail)
        present = set(connection.execute(select(_a.id)).scalars())
        gone = [state for id, state in sorted(log.published.items()) if id not in present]
        # New lines are appended to the heads files before the commit. Otherwise another process
        # could compare the unfrozen accounts with the older lines and freeze them again. If the
        # commit fails, the accounts stay frozen; the new lines repeat every published charge.
        streams = {tip.stream: (tip.seq, tip.head) for tip in read_tips(connection)}
        at_us = read_now(connection)
        log.accept(states, gone, at_us, streams if done else None)
        return done

    return database.write(work)


def _unfreeze(
    connection: Connection, row: AccountRow, published: Published | None, heads_lost: bool
) -> Published:
    """Charge a frozen account what it lost, raise its limit if that exceeds it, unfreeze it."""
    old, charged = row.account.limit, row.account.charged
    fill = 0
    if published is not None and published.in_rho and not old.rho_femto:
        # When an account gets its first limit in ρ, one entry charges it with the ρ of all earlier
        # charges. The restored database lacks that limit and that entry, so this ρ is charged
        # again.
        fill = rho_to_fill(connection, row.id)
    filled = charged + PrivacyLoss(0, 0, fill)
    limits = _limits(old, published)
    total = _total(filled, published)
    if heads_lost:
        total = _exhausted(limits, total)
    limit, total = _holding(limits, total)
    if counts_rho(limit.epsilon_nano):
        causes = _causes(connection, fill, limit, old, total - filled)
    else:
        # With a limit in ε above 1000 an account does not count in ρ, so no ρ is charged here. If
        # it counts in ρ later, the ρ of its charges is worked out from its entries.
        total = replace(total, rho_femto=charged.rho_femto, unpriced=charged.unpriced)
        causes = _causes(connection, 0, limit, old, total - charged)
    for cause in causes:
        changed = change_account(connection, row.id, cause)
        if changed is None:
            raise LedgerAlarm("a frozen account changed while it was being unfrozen")
        state = Published(row.id, changed.seq, changed.head, total, limit.amounts)
    return state


def _causes(
    connection: Connection, fill: int, limit: Limit, old: Limit, lost: PrivacyLoss
) -> list[Cause]:
    """The entries that fill in ρ, change the limit, and charge ``lost`` with the end of the freeze.

    Only the last of them is always necessary.
    """
    at_us = read_now(connection)
    causes = []
    if fill:
        causes.append(Cause(EntryKind.CHARGE, OPERATOR, at_us, (0, 0, fill, 0)))
    if limit != old:
        more = tuple(new - was for new, was in zip(limit.amounts, old.amounts, strict=True))
        causes.append(Cause(EntryKind.LIMIT_CHANGE, OPERATOR, at_us, more))
    unfreeze = Cause(EntryKind.UNFREEZE, OPERATOR, at_us, lost.amounts)
    return [*causes, unfreeze.counted(counts_rho(limit.epsilon_nano))]


def _total(charged: PrivacyLoss, published: Published | None) -> PrivacyLoss:
    """The sum of all charges of an account, also of those that only its published head shows."""
    if published is None:
        return charged
    total = _larger(charged, published.charged)
    if published.in_rho:
        return total
    # By the published heads the account had no limit in ρ, so its published ρ may be incomplete.
    # Several charges have at most the ρ of a single charge of their whole ε. So the ρ of that
    # single charge is added for the lost charges.
    lost = total.epsilon_nano - charged.epsilon_nano
    return _larger(total, charged + PrivacyLoss(0, 0, pure_femto(lost)))


def _exhausted(limits: list[Limit], charged: PrivacyLoss) -> PrivacyLoss:
    """The most that an account may have been charged, where later charges are unknown."""
    total = charged
    for limit in limits:
        lost = max(0, limit.epsilon_nano - charged.epsilon_nano)
        # The lost charges fitted the limit in ε or the limit in ρ. In the first case they have at
        # most the ρ of one charge of all remaining ε, and in the second the sum is within the limit
        # in ρ. So the larger of the two bounds holds in both cases.
        rho = max(limit.rho_femto, charged.rho_femto + pure_femto(lost))
        # If the lost charges fitted the limit in ρ, their ε is unknown. So the sum of charges is
        # marked as having no finite ε, and no later charge fits by ε.
        unpriced = int(limit.rho_femto > 0)
        most = PrivacyLoss(limit.epsilon_nano, limit.delta_atto, rho, unpriced)
        total = _larger(total, most)
    return total


def _holding(limits: list[Limit], total: PrivacyLoss) -> tuple[Limit, PrivacyLoss]:
    """The first of the limits that ``total`` fits, and this sum.

    If none does, the limit is raised to it. Then an account with a limit in ρ takes no charge until
    somebody sets a limit that holds the sum.
    """
    closing = None
    for limit in limits:
        widest = replace(limit, delta_atto=max(limit.delta_atto, total.delta_atto))
        if admits(widest.amounts, total.amounts, NOTHING):
            return widest, total
        closing = widest if widest.rho_femto else closing
    if closing is None:
        return replace(widest, epsilon_nano=max(widest.epsilon_nano, total.epsilon_nano)), total
    # No limit admits the sum of the charges, so the account is closed. The sum is marked as having
    # no finite ε, so that later charges can fit by ρ alone. The limit in ρ equals the sum, so none
    # fits.
    closed = replace(closing, rho_femto=total.rho_femto)
    return closed, replace(total, unpriced=max(1, total.unpriced))


def _limits(old: Limit, published: Published | None) -> list[Limit]:
    """The limits that an account may have had, by its row and by its published head."""
    if published is None or not published.limits:
        return [old]
    pairs = zip_longest(old.amounts, published.limits, fillvalue=0)
    epsilon, delta, *in_rho = map(max, *zip(*pairs, strict=True))
    if counts_rho(epsilon):
        return [old, Limit.read((epsilon, delta, *in_rho))]
    # An account with a limit in ε above 1000 has no limit in ρ. So a published limit in ρ cannot be
    # combined with such a stored limit, and replaces it as the later one.
    return [published.limit] if published.in_rho else [old, Limit(epsilon, delta)]


def _larger(left: PrivacyLoss, right: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(*map(max, left.amounts, right.amounts))
