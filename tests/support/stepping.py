"""The real calls of a ledger, one transaction at a time.

A client between two transactions is described by its call and the results of the transactions
so far. So a call is resumed by repeating it: the earlier transactions return these results, the
next one runs on the database, and the one after it raises ``Paused``. So any order of steps can
be tried, without real concurrency.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, PoolProxiedConnection, Transaction

from accounting.errors import AccountingError
from storage.database import database as database_module
from storage.database.database import Database
from storage.database.statements import Hot
from storage.errors import CommitUnknown, StorageError
from storage.journal.streams import STREAM
from storage.journal.writer import Writer
from storage.ledger.requests import Replay, Reservation
from tests.support.blocking import BlockingLedger

T = TypeVar("T")

#: The possible outcomes of a COMMIT: confirmed, done without a reply, or not done and without a
#: reply.
STANDS, STANDS_UNKNOWN, LOST_UNKNOWN = range(3)


class Paused(BaseException):
    """Raised where the call would begin another transaction."""


class SteppedDatabase(Database):
    """Runs one transaction of a call; ``values`` has its result."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.values: list[Any] = []
        self.committed = False
        self._history: Sequence[Any] = ()
        self._at, self._fate, self._inside = 0, STANDS, False

    def _past_the_pool(self) -> PoolProxiedConnection:
        # The test database is in memory. A connection from outside the pool would see another,
        # empty database.
        return self.engine.raw_connection()

    def resume(self, history: Sequence[Any], fate: int) -> None:
        """Prepare to repeat a call after ``history``; its next commit has ``fate``."""
        self._history, self._at, self._fate = history, 0, fate
        self.values, self.committed = [], False

    def step(self, run: Callable[[], T]) -> T:
        """Run the outermost of nested transactions, or return its result from the history."""
        if self._inside:
            return run()
        if self._is_new():
            with self._recording():
                self.values.append(run())
        return self._result()  # type: ignore[no-any-return]

    async def step_of(self, run: Callable[[], Awaitable[T]]) -> T:
        """Like ``step``, for a coroutine."""
        if self._inside:
            return await run()
        if self._is_new():
            with self._recording():
                self.values.append(await run())
        return self._result()  # type: ignore[no-any-return]

    def _is_new(self) -> bool:
        if self._at < len(self._history):
            return False
        if self.values:
            raise Paused
        return True

    def _result(self) -> Any:
        if self._at < len(self._history):
            value = self._history[self._at]
            self._at += 1
        else:
            (value,) = self.values
        if isinstance(value, Exception):
            raise value
        return value

    @contextmanager
    def _recording(self) -> Iterator[None]:
        self._inside = True
        try:
            yield
        except (StorageError, AccountingError) as error:
            self.values.append(error)
        finally:
            self._inside = False

    def _new_writer(self) -> Connection:
        return self.engine.connect().execution_options(writing=True)

    def _drop_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            # In the service, a stream of the journal ends with its connection. Here the pool has
            # one connection, which stays open after ``close`` so that the database in memory is not
            # lost.
            writer.info.pop(STREAM, None)
            writer.close()

    @property
    def stream(self) -> Any:
        """Where the one connection has left its stream of the journal; None without one."""
        with self.engine.connect() as connection:
            return connection.info.get(STREAM)

    @stream.setter
    def stream(self, tip: Any) -> None:
        with self.engine.connect() as connection:
            # If ``tip`` is None, the connection counts as one without a stream.
            connection.info[STREAM] = tip

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.step(lambda: Database.write(self, work))

    def look_up(self, statement: Hot, **values: Any) -> list[Any]:
        return self.step(lambda: Database.look_up(self, statement, **values))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Run all calls in the block without pausing."""
        self.resume((), STANDS)
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        if not self._inside:
            assert self._at == len(self._history), "an earlier read cannot be repeated"
            if self.values:
                raise Paused
            self.values.append(None)
        with super().read() as connection:
            yield connection

    def commit(self, transaction: Transaction) -> None:
        """Replaces ``storage.database.database._commit``."""
        fate, self._fate, self.committed = self._fate, STANDS, True
        if fate == LOST_UNKNOWN:
            transaction.rollback()
        else:
            transaction.commit()
        if fate != STANDS:
            raise CommitUnknown("the connection was lost")


class InPlace(ThreadPoolExecutor):
    """An executor without a thread: ``submit`` runs the work before it returns."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments, **named))
        except BaseException as error:
            done.set_exception(error)
        return done


class SteppedWriter(Writer):
    """The writer of the service, run inline: a batch of one member is one step."""

    _database: SteppedDatabase

    async def run(self, member: Any) -> Any:
        return await self._database.step_of(lambda: super(SteppedWriter, self).run(member))

    async def alone(self, call: Callable[[], T]) -> T:
        return await self._database.step_of(lambda: super(SteppedWriter, self).alone(call))


class SteppedLedger(BlockingLedger):
    """The ledger of the service, on a loop that runs only during a call."""

    def __init__(self, database: SteppedDatabase, **named: Any) -> None:
        super().__init__(database, **named)
        ledger, in_place = self.ledger, InPlace()
        writer = SteppedWriter(database, ledger._run, ledger._ring)
        writer._disk = writer._thread = in_place
        ledger._writer = writer
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(in_place)

    def _finished(self, call: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(call)


@contextmanager
def commits_of(database: SteppedDatabase) -> Iterator[None]:
    """Let ``database`` decide the fate of every COMMIT."""
    before = database_module._commit
    database_module._commit = database.commit
    try:
        yield
    finally:
        database_module._commit = before


def meaning(value: Any) -> Any:
    """The result of a transaction without names and times, which decide nothing."""
    if isinstance(value, Exception):
        return type(value).__name__
    if isinstance(value, Reservation):
        return value.attempt
    if isinstance(value, Replay):
        return value.body
    if isinstance(value, list):
        return tuple(map(meaning, value))
    if hasattr(value, "query_lease_until"):
        lapsed = value.query_lease_until <= value.now
        return value.query_state, value.attempt, lapsed, value.answer
    assert value is None or isinstance(value, bool), value
    return value
