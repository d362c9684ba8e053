"""When a wall behind a guard fires, the accounts concerned take no charge until somebody looked.

Guards decide what is charged; the constraints behind them never fire. When one does, the code or
the database is wrong in a way nobody knows, so what was refused once is not to be tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, or_, select
from sqlalchemy.exc import DBAPIError

from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account, entry
from storage.errors import LedgerAlarm, StorageError
from storage.ledger.freezing import freeze

#: Is told which accounts were frozen and when, in microseconds; none, when they could not be.
Tell = Callable[[Sequence[int], int], None]

_a = budget_account.c


class Alarms:
    """Freezes accounts of one database and tells ``tell``; safe to share between threads."""

    def __init__(self, database: Database, tell: Tell) -> None:
        self._database, self._tell = database, tell

    @contextmanager
    def watching(self, concerned: ColumnElement[bool]) -> Iterator[None]:
        """Freeze the accounts ``concerned`` when the block raises LedgerAlarm; it is raised on."""
        try:
            yield
        except LedgerAlarm:
            self.ring(concerned)
            raise

    def ring(self, concerned: ColumnElement[bool]) -> None:
        """Freeze the accounts, each by itself: what is wrong with one must not spare another."""
        frozen: list[int] = []
        at_us = 0

        def find(connection: Connection) -> tuple[int, Sequence[int]]:
            at_us = connection.execute(select(now_us())).scalar_one()
            return at_us, connection.execute(select(_a.id).where(concerned)).scalars().all()

        try:
            at_us, accounts = self._database.write(find)
            for id in accounts:
                frozen += self._frozen(id, at_us)
        except (StorageError, DBAPIError):
            pass  # the alarm itself is what must get through
        self._tell(frozen, at_us)

    def _frozen(self, id: int, at_us: int) -> list[int]:
        try:
            return self._database.write(lambda connection: freeze(connection, [id], at_us))
        except LedgerAlarm:
            return []  # a row that violates a constraint cannot be charged either


def of_pair(dataset_id: int, analyst_id: int) -> ColumnElement[bool]:
    """The accounts that a query of this analyst on this dataset is charged to."""
    return or_(
        and_(_a.dataset_id == dataset_id, _a.analyst_id.in_((0, analyst_id))),
        and_(_a.dataset_id == 0, _a.analyst_id == analyst_id),
    )


def of_query(*ids: UUID) -> ColumnElement[bool]:
    """The accounts that these queries were charged to."""
    return _a.id.in_(select(entry.c.account_id).where(entry.c.query_id.in_(ids)))
