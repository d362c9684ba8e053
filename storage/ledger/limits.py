"""Opening accounts, changing their limits, freezing them; each leaves an entry."""

from __future__ import annotations

from sqlalchemy import Connection, select

from accounting.account import AccountRank
from accounting.errors import BelowSpent
from accounting.measures import MEASURES
from accounting.privacy_loss import MAX_DELTA_ATTO, MAX_EPSILON_NANO, PrivacyLoss
from storage.database.expressions import insert_once, now_us
from storage.database.failures import Again
from storage.database.tables import budget_account
from storage.errors import LedgerAlarm, NotFound, PreconditionFailed
from storage.journal.layouts import EMPTY_HEAD, EntryKind, account_subject
from storage.ledger.accounts import AccountRow, account_row, select_accounts
from storage.ledger.entries import Cause, add_entries, change_account

_MAX = PrivacyLoss(MAX_EPSILON_NANO, MAX_DELTA_ATTO)


def open_account(
    connection: Connection,
    rank: AccountRank,
    dataset_id: int,
    analyst_id: int,
    limit: PrivacyLoss,
    actor_id: int,
) -> bool:
    """Open an account whose genesis entry grants ``limit``; False when it is open already."""
    _check(limit)
    insert = insert_once(
        connection.dialect.name, budget_account, "rank", "dataset_id", "analyst_id"
    ).returning(budget_account.c.id, now_us())
    opened = connection.execute(
        insert,
        {
            "rank": int(rank),
            "dataset_id": dataset_id,
            "analyst_id": analyst_id,
            **{measure.limit: 0 for measure in MEASURES},
            "head": EMPTY_HEAD,
        },
    ).one_or_none()
    if opened is None:
        return False
    account_id, at_us = opened
    genesis = Cause(
        EntryKind.GENESIS,
        actor_id,
        at_us,
        limit.amounts,
        subject=account_subject(rank, dataset_id, analyst_id),
    )
    changed = change_account(connection, account_id, genesis)
    if changed is None:
        raise LedgerAlarm("a new account has entries already")
    add_entries(connection, [changed])
    return True


def set_limit(
    connection: Connection,
    rank: AccountRank,
    dataset_id: int,
    analyst_id: int,
    limit: PrivacyLoss,
    actor_id: int,
    if_match: str | None,
) -> AccountRow:
    """Open the account with ``limit`` or move its limit there.

    Raises: BelowSpent; PreconditionFailed when ``if_match`` is not its ETag now (``*``: it must
    exist).
    """
    _check(limit)
    key = (rank, dataset_id, analyst_id)
    if if_match is None and open_account(connection, *key, limit, actor_id):
        return find_account(connection, *key)
    try:
        # Held until the change is written, or changes that race would undo each other's attempts.
        before = find_account(connection, *key, hold=True)
    except NotFound:
        raise PreconditionFailed("there is no such account yet") from None
    if if_match not in (None, "*", before.etag):
        raise PreconditionFailed("the account has changed")
    old = before.account.limit
    if limit == old:
        return before
    if not before.account.charged.fits(limit):
        raise BelowSpent(spent=before.account.charged)
    cause = Cause(
        EntryKind.LIMIT_CHANGE,
        actor_id,
        connection.execute(select(now_us())).scalar_one(),
        tuple(new - was for new, was in zip(limit.amounts, old.amounts, strict=True)),
    )
    changed = change_account(connection, before.id, cause, seen=before.seq)
    if changed is None:
        raise Again  # a charge or another change came in between: judge anew
    add_entries(connection, [changed])
    return find_account(connection, *key)


def set_frozen(connection: Connection, account_id: int, frozen: bool, actor_id: int) -> bool:
    """Stop or admit new charges; False when that is how the account stands already."""
    at_us = connection.execute(select(now_us())).scalar_one()
    kind = EntryKind.FREEZE if frozen else EntryKind.UNFREEZE
    changed = change_account(connection, account_id, Cause(kind, actor_id, at_us))
    if changed is not None:
        add_entries(connection, [changed])
    return changed is not None


def find_account(
    connection: Connection,
    rank: AccountRank,
    dataset_id: int,
    analyst_id: int,
    hold: bool = False,
) -> AccountRow:
    """The account, 0 standing for "all"; NotFound when it was never opened.

    ``hold``: nobody else changes it before this transaction ends.
    """
    c = budget_account.c
    statement = select_accounts().where(
        c.rank == int(rank), c.dataset_id == dataset_id, c.analyst_id == analyst_id
    )
    if hold:
        statement = statement.with_for_update(of=budget_account)
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise NotFound("there is no such account")
    return account_row(row)


def _check(limit: PrivacyLoss) -> None:
    if not limit.fits(_MAX):
        raise ValueError("a limit is at most ε = 10⁹ and below δ = 1")
