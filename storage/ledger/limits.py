"""Opening accounts and changing their limits; each leaves an entry.

An analyst's account over all datasets is opened with everything that was charged before. Its
first charge carries the sum of what stands against the analyst's accounts; queries that still run
are charged by name, so that a cancelled one gives its charge back here as well.
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
    """Open an account whose genesis entry grants ``limit``; None when it is open already."""
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
    """Open the account with ``limit`` or move its limit there.

    Raises: BelowSpent, also when more was charged before an account over all datasets is opened;
    PreconditionFailed when ``if_match`` is not its ETag now (``*``: it must exist).
    """
    _check(limit)
    ranges_over_all = key[0] == AccountRank.ANALYST
    if ranges_over_all:
        _wait_for_charges(connection)
    if if_match is None:
        opened = open_account(connection, key, limit, actor_id)
        if opened is not None:
            return _charged(connection, opened, key[2], actor_id) if ranges_over_all else opened
    # Held until the change is written, or changes that race would undo each other's attempts.
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
        raise Again  # a charge or another change came in between: judge anew
    return replace(before, account=replace(before.account, limit=limit), seq=before.seq + 1)


def _wait_for_charges(connection: Connection) -> None:
    """Let no charge or release be under way, and none begin before this transaction ends.

    A charge reads which accounts there are and then changes them. On PostgreSQL that reading holds
    a lock on the table until the charge is committed, and this one waits for it; on SQLite write
    transactions never overlap.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE budget_account IN ACCESS EXCLUSIVE MODE"))


def _charged(
    connection: Connection, account: AccountRow, analyst_id: int, actor_id: int
) -> AccountRow:
    """Charges a new account over all datasets with what was charged before.

    The queries that run are charged one by one. Raises: BelowSpent.
    """
    limit = account.account.limit
    charged = select(*SUMS).where(
        _a.rank == int(AccountRank.ANALYST_ON_DATASET), _a.analyst_id == analyst_id
    )
    # Summed here, because a sum over many accounts may exceed the 64 bits of a database's integer.
    spent = sum((PrivacyLoss(*row) for row in connection.execute(charged)), PrivacyLoss(0))
    if not spent.fits(limit):
        raise BelowSpent(spent=spent)
    # The moment of the genesis, which tells these charges from those that come later.
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
