"""An analyst's account over all datasets: opened with everything that was charged before.

Its first charge carries the sum of what stands against the analyst's accounts; queries that still
run are charged by name, so that a cancelled one gives its charge back here as well.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, text

from accounting.account import AccountRank
from accounting.errors import BelowSpent
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, entry, query
from storage.errors import LedgerAlarm
from storage.journal.layouts import EntryKind, request_subject
from storage.ledger.accounts import AccountRow
from storage.ledger.balances import SUMS
from storage.ledger.entries import Cause, add_entries, change_account
from storage.ledger.limits import find_account, open_account, set_limit
from storage.ledger.requests import QueryState

_a, _q = budget_account.c, query.c


def set_overall(
    connection: Connection, analyst_id: int, limit: PrivacyLoss, actor_id: int
) -> AccountRow:
    """Open the analyst's account over all datasets with ``limit``, or move its limit there.

    Raises: BelowSpent when more than that is charged to the analyst already.
    """
    _wait_for_charges(connection)
    key = (AccountRank.ANALYST, 0, analyst_id)
    standing = select(_a.id).where(
        _a.rank == int(AccountRank.ANALYST), _a.dataset_id == 0, _a.analyst_id == analyst_id
    )
    if connection.execute(standing).one_or_none() is not None:
        return set_limit(connection, *key, limit, actor_id, None)
    spent = _spent(connection, analyst_id)
    if not spent.fits(limit):
        raise BelowSpent(spent=spent)
    open_account(connection, *key, limit, actor_id)
    _charge_again(connection, find_account(connection, *key), spent, actor_id)
    return find_account(connection, *key)


def _wait_for_charges(connection: Connection) -> None:
    """Let no charge or release be under way, and none begin before this transaction ends.

    A charge reads which accounts there are and then changes them. On PostgreSQL that reading holds
    a lock on the table until the charge is committed, and this one waits for it; on SQLite write
    transactions never overlap.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE budget_account IN ACCESS EXCLUSIVE MODE"))


def _spent(connection: Connection, analyst_id: int) -> PrivacyLoss:
    # Summed here: a sum over many accounts may pass what 64 bits hold.
    charged = select(*SUMS).where(
        _a.rank == int(AccountRank.ANALYST_ON_DATASET), _a.analyst_id == analyst_id
    )
    return sum((PrivacyLoss(*row) for row in connection.execute(charged)), PrivacyLoss(0))


def _charge_again(
    connection: Connection, account: AccountRow, spent: PrivacyLoss, actor_id: int
) -> None:
    """Charge the new account what is spent: the queries that run one by one, the rest at once."""
    # The moment of the genesis, which tells these charges from those that come later.
    genesis = select(entry.c.at_us).where(entry.c.account_id == account.id, entry.c.seq == 1)
    at_us = connection.execute(genesis).scalar_one()
    own = _q.analyst_id == account.analyst_id, _q.state == int(QueryState.RUNNING)
    rows = connection.execute(select(query).where(*own).order_by(_q.id)).mappings().all()
    running = [(row, PrivacyLoss(*(row[m.column] for m in MEASURES))) for row in rows]
    rest = spent - sum((charge for _, charge in running), PrivacyLoss(0))
    causes = []
    if rest != PrivacyLoss(0):
        causes.append(Cause(EntryKind.CHARGE, actor_id, at_us, rest.amounts))
    for row, charge in running:
        subject = request_subject(
            row["id"].bytes,
            *(row["analyst_id"], row["dataset_id"], row["idem_key"], row["body_hash"]),
            row["request"],
        )
        causes.append(
            Cause(EntryKind.CHARGE, row["analyst_id"], at_us, charge.amounts, row["id"], subject)
        )
    for cause in causes:
        changed = change_account(connection, account.id, cause)
        if changed is None:
            raise LedgerAlarm("a new account refused what it was opened with")
        add_entries(connection, [changed])
