"""Adopts the database as it is, where a ledger with accounts has no published heads.

Danger: charges that the database has lost are given back by this. Nothing shows whether it has
lost any. So a service adopts by itself only once, at the first start that knows of adoption, and
afterwards an operator must ask for it. Nothing is charged and no freeze is ended.
"""

from collections.abc import Callable

from sqlalchemy import Connection, func, select

from storage.assurance.head_lines import Published
from storage.assurance.heads import HeadsLog
from storage.database.database import Database
from storage.database.expressions import read_now
from storage.database.tables import budget_account, journal
from storage.errors import StorageError
from storage.journal.facts import FIRST_CHANGE, FactKind, changed
from storage.journal.streams import record
from storage.ledger.accounts import LIMITS, SUMS
from storage.ledger.freezing import OPERATOR

#: The actions of two facts of the journal. The first states that the service began to publish
#: heads, the last hashes of the accounts' chains, and had none to adopt. The second states that the
#: heads in the database were adopted as they are, because no published heads existed.
HEADS_BEGAN, HEADS_ADOPTED = "ledger.heads_began", "ledger.adopt_heads"

_a, _j = budget_account.c, journal.c


class HeadsExist(StorageError):
    """The ledger has published heads, so there is nothing to adopt."""


def adopt(database: Database, log: HeadsLog) -> int:
    """Publish the heads of all accounts as the database has them; returns their number.

    Raises: HeadsExist.
    """
    log.refresh()
    if log.exist:
        raise HeadsExist("published heads exist: the service compares the ledger with them")
    return database.write(_adoption(log))


def adopt_once(database: Database, log: HeadsLog) -> int | None:
    """Adopt at the first start that knows of adoption. Returns the number of adopted accounts.

    Returns None if there is nothing to adopt, or if this is a later start.
    """
    log.refresh()

    def work(connection: Connection) -> int | None:
        kinds = (int(FactKind.HEADS), int(FactKind.UNTOLD_HEADS))
        begins = select(_j.stream).where(_j.kind >= FIRST_CHANGE, _j.kind.in_(kinds))
        if connection.execute(begins.limit(1)).first():
            return None
        accounts = connection.execute(select(func.count()).select_from(budget_account)).scalar_one()
        if accounts and not log.exist:
            return _adoption(log)(connection)
        # The fact ``HEADS_BEGAN`` states that heads of accounts are published from now on. If a
        # later start finds no file of heads, the file was lost, so that start adopts no heads.
        _record(connection, FactKind.UNTOLD_HEADS, HEADS_BEGAN, accounts)
        return None

    return database.write(work)


def _record(connection: Connection, kind: FactKind, action: str, accounts: int) -> None:
    detail = {"accounts": accounts}
    record(connection, changed(kind, b"", OPERATOR, action, "ledger", detail, {}, None))


def _adoption(log: HeadsLog) -> Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        rows = select(_a.id, _a.seq, _a.head, *SUMS, *LIMITS).order_by(_a.id)
        states = [Published.of(*row) for row in connection.execute(rows)]
        _record(connection, FactKind.HEADS, HEADS_ADOPTED, len(states))
        # The heads of the accounts are published before the commit. If the commit fails, that does
        # no harm, because the files of heads name only entries that the database already has.
        log.publish(states, read_now(connection))
        return len(states)

    return work
