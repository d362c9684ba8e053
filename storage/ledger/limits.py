"""Opening accounts and changing their limits; each leaves an entry.

An analyst's account over all datasets is opened with everything that was charged before. Each
running query has an entry of its own, so that its release gives this charge back as well. One more
entry holds the sum of all other charges to the analyst's accounts.
"""

from dataclasses import replace

from sqlalchemy import Connection, select, text

from accounting.account import Account, AccountRank
from accounting.errors import BelowSpent
from accounting.measures import MEASURES
from accounting.privacy_loss import LARGEST, PrivacyLoss
from storage.database.expressions import insert_once, now_us, read_now
from storage.database.failures import Again
from storage.database.tables import budget_account, entry, query
from storage.errors import LedgerAlarm, PreconditionFailed
from storage.journal.layouts import EMPTY_HEAD, EntryKind, account_subject
from storage.ledger.accounts import SUMS, AccountKey, AccountRow, find_account
from storage.ledger.entries import Cause, change_account, charge_of
from storage.ledger.requests import QueryState

_a, _q = budget_account.c, query.c


def open_account(
    connection: Connection, key: AccountKey, limit: PrivacyLoss, actor_id: int
) -> AccountRow | None:
    """Opens an account whose genesis entry grants ``limit``; returns None if it exists already."""
    _check(limit)
    names = ("rank", "dataset_id", "analyst_id")
    opened = connection.execute(
        insert_once(connection.dialect.name, budget_account, *names).returning(_a.id, now_us()),
        {
            **dict(zip(names, key, strict=True)),
            **{measure.limit: 0 for measure in MEASURES},
            "head": EMPTY_HEAD,
        },
    ).one_or_none()
    if opened is None:
        return None
    account_id, at_us = opened
    subject = account_subject(*key)
    genesis = Cause(EntryKind.GENESIS, actor_id, at_us, limit.amounts, subject=subject)
    if change_account(connection, account_id, genesis) is None:
        raise LedgerAlarm("a new account has entries already")
    return find_account(connection, key)


def set_limit(
    connection: Connection,
    key: AccountKey,
    limit: PrivacyLoss,
    actor_id: int,
    if_match: str | None = None,
) -> AccountRow:
    """Opens the account with ``limit``, or changes the limit of an existing account to it.

    Raises: BelowSpent if more than ``limit`` is charged, also to a new account over all datasets;
    PreconditionFailed if ``if_match`` is not the current ETag. ``*`` matches any existing account.
    """
    _check(limit)
    ranges_over_all = key[0] == AccountRank.ANALYST
    if ranges_over_all:
        _wait_for_charges(connection)
    if if_match is None:
        opened = open_account(connection, key, limit, actor_id)
        if opened is not None:
            return _charged(connection, opened, key[2], actor_id) if ranges_over_all else opened
    # Locked until the change is written, or concurrent changes would make each other start again.
    before = find_account(connection, key, hold=True)
    if before is None:
        raise PreconditionFailed("there is no such account yet")
    if if_match not in (None, "*", before.etag):
        raise PreconditionFailed("the account has changed")
    old = before.account.limit
    if limit == old:
        return before
    if not before.account.charged.fits(limit):
        raise BelowSpent(spent=before.account.charged)
    more = tuple(new - was for new, was in zip(limit.amounts, old.amounts, strict=True))
    cause = Cause(EntryKind.LIMIT_CHANGE, actor_id, read_now(connection), more)
    if change_account(connection, before.id, cause, seen=before.seq) is None:
        raise Again  # the account has changed meanwhile: start again
    return replace(before, account=replace(before.account, limit=limit), seq=before.seq + 1)


def _wait_for_charges(connection: Connection) -> None:
    """Waits for charges and releases under way; none begins before this transaction ends.

    A charge that misses the new account would not count against it. On PostgreSQL a charge locks
    the table until it is committed, and this function waits for that lock. On SQLite write
    transactions never overlap.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE budget_account IN ACCESS EXCLUSIVE MODE"))


def _charged(
    connection: Connection, account: AccountRow, analyst_id: int, actor_id: int
) -> AccountRow:
    """Charges a new account over all datasets with everything that was charged before.

    Each running query gets an entry of its own. Raises: BelowSpent.
    """
    limit = account.account.limit
    charged = select(*SUMS).where(
        _a.rank == int(AccountRank.ANALYST_ON_DATASET), _a.analyst_id == analyst_id
    )
    # Summed here, because a sum over many accounts may exceed the 64 bits of a database's integer.
    spent = sum((PrivacyLoss(*row) for row in connection.execute(charged)), PrivacyLoss(0))
    if not spent.fits(limit):
        raise BelowSpent(spent=spent)
    # These charges have the moment of the genesis entry; later charges have a later one.
    genesis = select(entry.c.at_us).where(entry.c.account_id == account.id, entry.c.seq == 1)
    at_us = connection.execute(genesis).scalar_one()
    own = _q.analyst_id == analyst_id, _q.state == int(QueryState.RUNNING)
    running = connection.execute(select(query).where(*own).order_by(_q.id)).mappings().all()
    rest = spent
    for row in running:
        rest -= PrivacyLoss(*(row[measure.column] for measure in MEASURES))
    causes = [charge_of(row, at_us) for row in running]  # type: ignore[arg-type]
    if rest != PrivacyLoss(0):
        causes.insert(0, Cause(EntryKind.CHARGE, actor_id, at_us, rest.amounts))
    for cause in causes:
        if change_account(connection, account.id, cause) is None:
            raise LedgerAlarm("a new account refused what it was opened with")
    return replace(account, account=Account(limit, spent), seq=account.seq + len(causes))


def _check(limit: PrivacyLoss) -> None:
    if not limit.fits(LARGEST):
        raise ValueError("a limit is at most ε = 10⁹ and below δ = 1")
