"""The budget ledger: charge first, answer once, forget nothing.

Reserving a query *is* charging it. Settling stores the answer and touches no account; releasing,
possible only before the records were opened, is the only way a charge is given back. A crash
therefore needs no repair: a query that was abandoned is already charged, and a retry under its key
runs again under that charge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.pages import Page
from storage.database.tables import budget_account, settlement
from storage.errors import CommitUnknown, NotFound
from storage.journal import audit
from storage.journal.writer import Change, Writer
from storage.ledger import alarms, batch, replay, settling
from storage.ledger.accounts import AccountRow, account_row, select_accounts
from storage.ledger.entry_pages import EntryRow, page_of_entries
from storage.ledger.limits import find_account, set_limit
from storage.ledger.overall import set_overall
from storage.ledger.requests import Replay, Reservation, Reserve, Settle

__all__ = ["AccountRow", "EntryRow", "Ledger", "Replay", "Reservation", "Reserve"]

#: After such a silence of its holder anybody with the key may run a query again.
LEASE_US = 600 * 1_000_000


class Ledger:
    """The accounts and queries of one database; safe to share between threads.

    Args:
        failure_body: the fixed reply, of status 500, to a query that failed after its records
            were opened; it may name the query's id and nothing else.
        lease_us: how long an attempt has the query to itself without renewing its lease.
        on_alarm: is told which accounts were frozen, and when, after a constraint has fired.
    """

    def __init__(
        self,
        database: Database,
        *,
        failure_body: Callable[[UUID], bytes],
        lease_us: int = LEASE_US,
        on_alarm: alarms.Tell = lambda _accounts, _at_us: None,
    ) -> None:
        self._database = database
        self.failure_body = failure_body
        self._lease_us = lease_us
        self._alarms = alarms.Alarms(database, on_alarm)
        self._writer = Writer(database, self._run, self._on_alarm)
        database.on_close(self._writer.close)

    # ---------------------------------------------------------------- accounts

    def grant(
        self,
        dataset_id: int,
        analyst_id: int,
        limit: PrivacyLoss,
        *,
        actor_id: int,
        if_match: str | None = None,
    ) -> AccountRow:
        """Set the analyst's allowance for the dataset, opening the account at need.

        Raises: BelowSpent; PreconditionFailed when ``if_match`` is not the account's ETag.
        """

        def work(connection: Connection) -> AccountRow:
            account = set_limit(
                connection,
                AccountRank.ANALYST_ON_DATASET,
                dataset_id,
                analyst_id,
                limit,
                actor_id,
                if_match,
            )
            subject = f"{account.dataset}/{account.analyst}"
            audit.record(connection, actor_id, "budget.set", subject, limit.as_dict())
            return account

        with self._alarms.watching(alarms.of_pair(dataset_id, analyst_id)):
            return self._database.write(work)

    def grant_overall(self, analyst_id: int, limit: PrivacyLoss, *, actor_id: int) -> AccountRow:
        """Set what the analyst may learn of all datasets together; opening counts what was charged.

        Raises: BelowSpent.
        """

        def work(connection: Connection) -> AccountRow:
            account = set_overall(connection, analyst_id, limit, actor_id)
            subject = f"{account.analyst}"
            audit.record(connection, actor_id, "budget.overall", subject, limit.as_dict())
            return account

        with self._alarms.watching(alarms.of_pair(0, analyst_id)):
            return self._database.write(work)

    def overall(self, analyst_id: int) -> AccountRow | None:
        """The analyst's account over all datasets, None when there is no such limit."""
        return self._find(AccountRank.ANALYST, 0, analyst_id)

    def account(self, dataset_id: int, analyst_id: int) -> AccountRow | None:
        """The analyst's account for the dataset, None when nothing was ever granted."""
        return self._find(AccountRank.ANALYST_ON_DATASET, dataset_id, analyst_id)

    def cap(self, dataset_id: int) -> AccountRow:
        """What all analysts together may learn of the dataset; NotFound when it is unknown."""
        cap = self._find(AccountRank.DATASET, dataset_id, 0)
        if cap is None:
            raise NotFound("there is no such dataset")
        return cap

    def accounts_of(self, dataset_id: int) -> list[AccountRow]:
        """The analysts' accounts for the dataset, without its cap, by name."""
        return self._accounts(budget_account.c.dataset_id == dataset_id)

    def accounts_of_analyst(self, analyst_id: int) -> list[AccountRow]:
        """The analyst's accounts, one a dataset, by name."""
        return self._accounts(budget_account.c.analyst_id == analyst_id)

    def _find(self, rank: AccountRank, dataset_id: int, analyst_id: int) -> AccountRow | None:
        with self._database.read() as connection:
            try:
                return find_account(connection, rank, dataset_id, analyst_id)
            except NotFound:
                return None

    def _accounts(self, whose: ColumnElement[bool]) -> list[AccountRow]:
        statement = (
            select_accounts()
            .where(budget_account.c.rank == int(AccountRank.ANALYST_ON_DATASET), whose)
            .order_by("dataset", "analyst")
        )
        with self._database.read() as connection:
            return [account_row(row) for row in connection.execute(statement)]

    # ---------------------------------------------------------------- queries

    def replay(self, analyst_id: int, key: str, body_hash: bytes) -> Replay | None:
        """The stored reply under this key; None when ``reserve`` is to be tried.

        Raises: KeyReused; StillRunning, also until the release instant of a reply that is there;
        QueryReleased.
        """
        stored = replay.look_up(self._database, analyst_id, key, body_hash)
        return stored if isinstance(stored, Replay) else None

    async def reserve(self, request: Reserve) -> Reservation | Replay:
        """Charge the query, or take it over under its charge, or give its stored reply.

        Raises: BudgetExhausted, CapExhausted, AccountFrozen, NoRecords, NotFound, and what
        ``replay`` raises; nothing is charged or stored then. CommitUnknown: the charge may stand.
        """
        outcome = await self._writer.run(request)
        if isinstance(outcome, Reservation):
            return outcome
        # The key is taken.
        key = (request.analyst_id, request.stored_key, request.body_hash)
        stored = await asyncio.to_thread(self.replay, *key)
        if stored is not None:
            return stored

        def work(connection: Connection) -> Reservation | Replay:
            row = replay.find(connection, *key)
            if isinstance(row, replay.Lapsed):
                return replay.take_over(connection, row, self._lease_us, self.failure_body)
            assert row is not None, "a key that is taken has a query"
            return row

        taken: Reservation | Replay = await self._writer.run(Change(work, _concerned(request)))
        return taken

    async def settle(
        self, reservation: Reservation, *, status: int, body: bytes, release_us: int
    ) -> bool:
        """Store the reply; only after True may it leave, at ``release_us`` or later.

        False: another attempt holds the query or has answered it, and ``body`` must be dropped.
        Raises: CommitUnknown when not even a second look could tell.
        """
        reply = Settle(reservation.query_id, reservation.attempt, status, body, release_us)
        try:
            return bool(await self._writer.run(reply))
        except CommitUnknown:
            if await asyncio.to_thread(self._is_settled, reply):
                return True
            raise

    async def renew(self, *reservations: Reservation) -> bool:
        """Heartbeat: extends the lease of each query by another whole lease.

        Returns False if one of them is over or another attempt holds it; that one is not changed.
        """
        # Sorted by id: two processes lock rows in one order and cannot deadlock.
        ordered = sorted(reservations, key=lambda one: one.query_id)

        def work(connection: Connection) -> bool:
            renewed = [
                settling.renew(connection, one.query_id, one.attempt, self._lease_us)
                for one in ordered
            ]
            return all(renewed)

        concerned = alarms.of_query(*(one.query_id for one in ordered))
        return bool(await self._writer.run(Change(work, concerned)))

    async def release(self, reservation: Reservation) -> bool:
        """Give the charge back; for the holder alone, before it has opened the records.

        False, and nothing changed, when this is not the first attempt or it is over.
        """
        if reservation.attempt != 1:
            return False
        id = reservation.query_id
        change = Change(lambda connection: settling.release(connection, id), alarms.of_query(id))
        return bool(await self._writer.run(change))

    def _run(self, connection: Connection, members: Sequence[batch.Member]) -> batch.Outcomes:
        return batch.run(connection, members, self._lease_us)

    def _on_alarm(self, member: batch.Member | Change[ColumnElement[bool]]) -> None:
        self._alarms.ring(_concerned(member))

    def _is_settled(self, reply: Settle) -> bool:
        s = settlement.c
        stored = select(s.query_id).where(
            s.query_id == reply.query_id,
            s.attempt == reply.attempt,
            s.answer_hash == sha256(reply.body).digest(),
        )
        with self._database.read() as connection:
            return connection.execute(stored).one_or_none() is not None

    # ---------------------------------------------------------------- history

    def entries(
        self,
        *,
        analyst_id: int | None = None,
        owner_id: int | None = None,
        dataset: str | None = None,
        kind: str | None = None,
        analyst: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[EntryRow]:
        """Entries, newest first: of one analyst's accounts, of one owner's datasets, or all.

        ``dataset``, ``kind`` and ``analyst`` narrow them down by name.
        """
        with self._database.read() as connection:
            return page_of_entries(
                connection, analyst_id, owner_id, dataset, limit, cursor, kind, analyst
            )


def _concerned(member: batch.Member | Change[ColumnElement[bool]]) -> ColumnElement[bool]:
    """Returns the accounts that ``member`` charges or names."""
    if isinstance(member, Change):
        return member.subject
    if isinstance(member, Reserve):
        return alarms.of_pair(member.dataset_id, member.analyst_id)
    return alarms.of_query(member.query_id)
