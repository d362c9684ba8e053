"""The budget ledger: charge first, answer once, forget nothing.

To reserve a query is to charge it. Settling stores the answer and changes no account. A charge is
given back only by a release, which is possible only before the records are opened. A crash
therefore needs no repair: the abandoned query is charged already, and a retry under its
idempotency key runs under that charge.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, or_, select

from accounting.account import AccountRank, Limit
from accounting.errors import AccountFrozen
from storage.database.database import Database
from storage.database.pages import equal
from storage.database.statements import pipelined, read_id
from storage.database.tables import budget_account, dataset, entry, query
from storage.errors import CommitUnknown, LedgerAlarm, NotFound
from storage.journal import streams
from storage.journal.facts import FactKind, changed, number_subject
from storage.journal.writer import Writer
from storage.ledger import replay, settling
from storage.ledger.accounts import (
    ACCOUNTS,
    AccountKey,
    AccountRow,
    account_of_key,
    charged_accounts,
    find_account,
    has_key,
)
from storage.ledger.charging import reserve_all
from storage.ledger.freezing import ring
from storage.ledger.limits import End, NewLimit, largest_composition, open_account, set_limit
from storage.ledger.requests import Equals, QueryState, Replay, Reservation, Reserve, Settle
from storage.ledger.totals import Total, analyst_counts, totals

__all__ = ["AccountRow", "Ledger", "Replay", "Reservation", "Reserve"]

T = TypeVar("T")

#: Microseconds without renewal after which the lease of a query has expired. Then a retry under its
#: idempotency key runs the query again.
LEASE_US = 600 * 1_000_000

_a = budget_account.c


class Ledger:
    """The accounts and queries of one database; safe to share between threads.

    Args:
        lease_us: how long a lease lasts without renewal, in microseconds.
        on_alarm: called after a constraint has fired, with the ids of the frozen accounts and the
            moment in microseconds. The list is empty if they could not be frozen.
        may_charge: False while this process must refuse charges, whatever the accounts say.
    """

    def __init__(
        self,
        database: Database,
        *,
        lease_us: int = LEASE_US,
        on_alarm: Callable[[Sequence[int], int], None] = lambda _accounts, _at_us: None,
        may_charge: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._lease_us = lease_us
        self._on_alarm = on_alarm
        self._may_charge = may_charge
        self._writer = Writer(database, self._run, self._ring)
        database.on_close(self._writer.close)

    # ---------------------------------------------------------------- accounts

    def grant(
        self,
        dataset_id: int | None,
        analyst_id: int,
        limit: Limit | NewLimit,
        *,
        actor_id: int,
        if_match: str | None = None,
        end: End | None = None,
        then: Callable[[Connection, AccountRow], None] = lambda _connection, _account: None,
    ) -> AccountRow:
        """Sets the analyst's allowance for the dataset, or for all datasets together if None.

        An account that does not exist is opened. An account over all datasets is opened with
        everything that was charged before. Without ``end`` an account keeps the end that it has.
        ``then`` gets the account in the same transaction; after an exception nothing has changed.
        Raises: BelowSpent; PreconditionFailed when ``if_match`` is not the account's ETag.
        """
        action = "budget.overall" if dataset_id is None else "budget.set"
        key = _key(dataset_id, analyst_id)

        def work(connection: Connection) -> AccountRow:
            account = _change_limit(connection, action, key, limit, actor_id, if_match, end)
            then(connection, account)
            return account

        return self._write(work, _of_pair(key.dataset_id, key.analyst_id))

    def limit_cap(self, dataset_id: int, limit: Limit, *, actor_id: int) -> AccountRow:
        """Sets the limit of all analysts together on the dataset. Raises: BelowSpent."""

        def work(connection: Connection) -> AccountRow:
            return change_cap(connection, dataset_id, limit, actor_id)

        return self._write(work, _of_pair(dataset_id, 0))

    def key_account(self, limit: Limit, *, actor_id: int) -> Callable[[Connection, int, str], None]:
        """Returns what opens the account of a new API key, given the user's id and the key's.

        It runs in the transaction that stores the key.
        """

        def work(connection: Connection, user_id: int, key_id: str) -> None:
            key = account_of_key(user_id, key_id)
            account = open_account(connection, key, limit, actor_id)
            if account is None:
                raise LedgerAlarm("a new key has an account already")
            _record_limit(connection, "key.limit", account, actor_id)

        return work

    def accounts_of_keys(self, analyst_id: int) -> dict[str, AccountRow]:
        """The accounts of the analyst's API keys that have a limit, by the id of the key."""
        own = ACCOUNTS.where(_a.rank == int(AccountRank.KEY), _a.analyst_id == analyst_id)
        with self._database.read() as connection:
            rows = map(AccountRow.of, connection.execute(own))
            return {row.key_id: row for row in rows}

    def _write(self, work: Callable[[Connection], T], concerned: ColumnElement[bool]) -> T:
        """Runs ``Database.write``. An alarm freezes the accounts that meet ``concerned``."""
        try:
            return self._database.write(work)
        except LedgerAlarm:
            self._on_alarm(*ring(self._database, concerned))
            raise

    def account(self, dataset_id: int | None, analyst_id: int) -> AccountRow | None:
        """The analyst's account for the dataset, or over all datasets if ``dataset_id`` is None.

        Returns None if there is no such account, because nothing was ever granted.
        """
        return self._find(_key(dataset_id, analyst_id))

    def cap(self, dataset_id: int) -> AccountRow:
        """The account of all analysts together on the dataset. Raises: NotFound."""
        cap = self._find(AccountKey(int(AccountRank.DATASET), dataset_id, 0))
        if cap is None:
            raise NotFound("there is no such dataset")
        return cap

    def largest_composition(self, account: AccountRow) -> int:
        """The largest δ_c that the account ever had, in units of 10⁻¹⁸."""
        with self._database.read() as connection:
            return largest_composition(connection, account.id)

    def accounts(
        self,
        *,
        dataset_id: int | None = None,
        analyst_id: int | None = None,
        datasets: Collection[int] | None = None,
    ) -> list[AccountRow]:
        """The accounts of analysts on one dataset, or of one analyst, sorted by name.

        ``datasets``: only those on datasets with these ids; None for all.
        """
        own = equal({_a.dataset_id: dataset_id, _a.analyst_id: analyst_id})
        statement = ACCOUNTS.where(_a.rank == int(AccountRank.ANALYST_ON_DATASET), *own)
        if datasets is not None:
            statement = statement.where(_a.dataset_id.in_(datasets))
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by("dataset", "analyst"))
            return list(map(AccountRow.of, rows))

    def caps(self, owner_id: int | None = None) -> list[AccountRow]:
        """The caps of the datasets of one owner, or of all datasets, sorted by name."""
        statement = ACCOUNTS.where(_a.rank == int(AccountRank.DATASET))
        if owner_id is not None:
            statement = statement.where(dataset.c.owner_id == owner_id)
        with self._database.read() as connection:
            return list(map(AccountRow.of, connection.execute(statement.order_by("dataset"))))

    def totals(self, names: Collection[str]) -> dict[str, Total]:
        """The allowances of analysts on each of these datasets, counted and added up."""
        with self._database.read() as connection:
            return totals(connection, names)

    def analyst_counts(self, names: Collection[str]) -> dict[str, int]:
        """How many analysts have an allowance on each of these datasets."""
        with self._database.read() as connection:
            return analyst_counts(connection, names)

    def _find(self, key: AccountKey) -> AccountRow | None:
        with self._database.read() as connection:
            return find_account(connection, key)

    # ---------------------------------------------------------------- queries

    def replay(
        self, analyst_id: int, key: str, body_hash: bytes, equals: Equals | None = None
    ) -> Replay | None:
        """The stored reply under this idempotency key; None if ``reserve`` may be called.

        Raises: KeyReused; QueryReleased; StillRunning, also for a stored reply whose release
        instant lies ahead.
        """
        rows = self._database.look_up(replay.LOOK_UP, analyst=analyst_id, key=key)
        return self.judge(rows[0], body_hash, equals) if rows else None

    def judge(self, row: Any, body_hash: bytes, equals: Equals | None = None) -> Replay | None:
        """The result of ``replay`` for a row of ``storage.ledger.replay.COLUMNS``.

        Raises: LedgerAlarm, and freezes the accounts, if the query runs again after its ending.
        """
        try:
            return replay.judge(row, body_hash, equals)
        except LedgerAlarm:
            self._on_alarm(*ring(self._database, _of_queries(read_id(row.query_id))))
            raise

    async def reserve(self, request: Reserve) -> Reservation | Replay:
        """Charges a new query, or takes over an expired one, or returns the stored reply.

        Raises: BudgetExhausted, CapExhausted, AccountFrozen, NoRecords, NotFound, and the errors
        of ``replay``; nothing is charged or stored then. After CommitUnknown a charge may exist.
        """
        if not self._may_charge():
            # Danger: a ledger that lost its latest entries may also have lost the answer of a
            # query. To run such a query again would release a second answer, so takeovers are
            # refused too.
            raise AccountFrozen("this process finds no published heads of the ledger")
        outcome: Reservation | Replay | None = await self._writer.run(request)
        if outcome is None:
            # None means that a query with this idempotency key exists already, so its stored answer
            # is returned or it is taken over.
            key = (request.analyst_id, request.stored_key, request.body_hash, request.equals)
            outcome = await asyncio.to_thread(self.replay, *key)
        if outcome is not None:
            return outcome
        work = partial(
            replay.take_over,
            request=request,
            lease_us=self._lease_us,
        )
        return await self._writer.alone(partial(self._write, work, _concerned(request)))

    async def settle(
        self, reservation: Reservation, *, status: int, body: bytes, release_us: int
    ) -> bool:
        """Stores the reply. It may leave only after True, and at ``release_us`` or later.

        Returns False if another attempt holds or has answered the query: drop ``body`` then.
        Raises: CommitUnknown if the reply is not found after a commit with unknown result.
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
        work = partial(settling.renew, reservations=reservations, lease_us=self._lease_us)
        concerned = _of_queries(*(one.query_id for one in reservations))
        return await self._writer.alone(partial(self._write, work, concerned))

    async def release(self, reservation: Reservation) -> bool:
        """Gives the charge back. Only the holder may call this, before it opens the records.

        Returns False and changes nothing unless this is the first attempt and it still runs.
        """
        if reservation.attempt != 1:
            return False
        id = reservation.query_id
        work = partial(settling.release, query_id=id)
        return await self._writer.alone(partial(self._write, work, _of_queries(id)))

    def _run(self, connection: Connection, members: Sequence[Reserve | Settle]) -> list[Any]:
        """Runs one batch of the writer, and returns one outcome per member, in their order.

        The outcome of a reserve is the reservation, its refusal, or None if its key exists. The
        outcome of a settle is True if the reply is stored.
        """
        settles = [member for member in members if isinstance(member, Settle)]
        reserves = [member for member in members if isinstance(member, Reserve)]
        # On PostgreSQL a batch takes three round trips: these two pipelines, and its commit.
        with pipelined(connection):
            stored = settling.settle(connection, settles)
            decide = reserve_all(connection, reserves, self._lease_us)
        settled = iter(stored())
        outcomes, charge = decide()
        with pipelined(connection):
            check_charges, check_stream = charge(), streams.write(connection)
        check_charges()
        check_stream()
        reserved = iter(outcomes)
        return [next(settled if isinstance(one, Settle) else reserved) for one in members]

    def _ring(self, member: Reserve | Settle) -> None:
        self._on_alarm(*ring(self._database, _concerned(member)))

    def _is_settled(self, reply: Settle) -> bool:
        q = query.c
        stored = select(q.id).where(
            q.id == reply.query_id,
            q.state == int(QueryState.SETTLED),
            q.attempt == reply.attempt,
            q.answer_hash == sha256(reply.body).digest(),
        )
        with self._database.read() as connection:
            return connection.execute(stored).one_or_none() is not None


def change_cap(connection: Connection, dataset_id: int, limit: Limit, actor_id: int) -> AccountRow:
    """Sets the limit of all analysts together on the dataset, with its fact. Raises: BelowSpent."""
    key = AccountKey(int(AccountRank.DATASET), dataset_id, 0)
    return _change_limit(connection, "budget.cap", key, limit, actor_id)


def _change_limit(
    connection: Connection,
    action: str,
    key: AccountKey,
    limit: Limit | NewLimit,
    actor_id: int,
    if_match: str | None = None,
    end: End | None = None,
) -> AccountRow:
    account, is_changed = set_limit(connection, key, limit, actor_id, if_match, end)
    if is_changed:
        _record_limit(connection, action, account, actor_id)
    return account


def _record_limit(connection: Connection, action: str, account: AccountRow, actor_id: int) -> None:
    subject = "/".join(filter(None, (account.dataset, account.analyst, account.key_id)))
    limit = account.account.limit
    state: dict[str, Any] = {"limits": list(limit.amounts)}
    detail: dict[str, Any] = limit.as_dict()
    # The fact of an account without an end omits ``until_us``. So it has the form of facts of
    # schema 0008, when accounts had no ends.
    if account.until_us is not None:
        state["until_us"] = detail["until_us"] = account.until_us
    fact = changed(
        *(FactKind.LIMIT, number_subject(account.id), actor_id, action, subject),
        *(detail, state, account.seq),
    )
    streams.record(connection, fact)


def _key(dataset_id: int | None, analyst_id: int) -> AccountKey:
    """The key of the analyst's account for a dataset, or over all datasets if None."""
    on_dataset, overall, _ = charged_accounts(dataset_id, analyst_id)
    return overall if dataset_id is None else on_dataset


def _concerned(member: Reserve | Settle) -> ColumnElement[bool]:
    """Returns the condition of the accounts that ``member`` is charged to."""
    if isinstance(member, Reserve):
        own = _of_pair(member.dataset_id, member.analyst_id)
        if member.limited_key is None:
            return own
        key = account_of_key(member.analyst_id, member.limited_key)
        return or_(own, has_key(budget_account, key))
    return _of_queries(member.query_id)


def _of_pair(dataset_id: int, analyst_id: int) -> ColumnElement[bool]:
    keys = charged_accounts(dataset_id, analyst_id)
    return or_(*(has_key(budget_account, key) for key in keys))


def _of_queries(*ids: UUID) -> ColumnElement[bool]:
    return _a.id.in_(select(entry.c.account_id).where(entry.c.query_id.in_(ids)))
