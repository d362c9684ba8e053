"""Group commit: one transaction after another, each for all members that wait.

While a commit waits for the disk, new members gather, and the next transaction takes them all.
Danger: a caller must not get an outcome before the commit of its batch has returned, because the
transaction may still be rolled back.

On SQLite a statement takes microseconds, so a batch begins and runs on the event loop itself, and
only its commit runs in a thread. Running them in a thread too would take many times longer, because
the threads would wait for the interpreter's lock. On PostgreSQL all three run in a thread.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from storage.database.database import Database
from storage.database.failures import Again
from storage.errors import Busy, CommitUnknown, LedgerAlarm, StreamAlarm

T = TypeVar("T")

#: The most requests in a batch that runs on the event loop, which it blocks for some milliseconds.
MOST_INLINE = 64
#: The most requests in a batch that runs in a thread. This bounds the time for which the batch
#: holds its locks.
MOST = 512


class Writer:
    """Commits members in batches; safe to use from any event loop.

    Args:
        run: returns the outcomes of members in their order, inside a transaction. The outcome of
            a refused member is an exception, and it has written nothing.
        on_alarm: called in a thread with each member whose write a constraint refused.
    """

    def __init__(
        self,
        database: Database,
        run: Callable[[Connection, Sequence[Any]], Sequence[Any]],
        on_alarm: Callable[[Any], None],
    ) -> None:
        self._database, self._run, self._on_alarm = database, run, on_alarm
        self._most = MOST_INLINE if database.embedded else MOST
        # There are two threads, because a call that waits for the write lock must not delay the
        # commit that frees it.
        self._disk: Executor = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._thread: Executor = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._closed = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def run(self, member: Any) -> Any:
        """Returns the outcome of ``member`` once its transaction is committed.

        The member is committed even if the caller is cancelled. Raises: the refusal of the member;
        Busy, also while closing; CommitUnknown.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        queue = self._loops.get(loop) or self._loops.setdefault(loop, _Queue())
        queue.waiting.append((member, future))
        if queue.worker is None or queue.worker.done():
            queue.worker = loop.create_task(self._work(queue.waiting))
        try:
            return await future
        finally:
            del future  # A refusal refers to this frame by its traceback, and the future to it.

    async def alone(self, call: Callable[[], T]) -> T:
        """Runs ``call``, a transaction that may take long, in a thread and outside of batches.

        It ends even if the caller is cancelled. Raises: the errors of ``call``; Busy while closing.
        """
        if self._closed:
            raise Busy("the service is stopping; nothing was written")
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, call))

    def close(self) -> None:
        """Refuses new calls, and ends the threads after they have committed what they began."""
        self._closed = True
        self._thread.shutdown()
        self._disk.shutdown()

    async def _work(self, waiting: deque[Any]) -> None:
        loop = asyncio.get_running_loop()
        while waiting:
            # Yields until the batch stops growing: one fsync costs more than a loop iteration.
            seen = 0
            while seen < len(waiting) < self._most:
                seen = len(waiting)
                await asyncio.sleep(0)
            batch = [waiting.popleft() for _ in range(min(len(waiting), self._most))]
            members = [member for member, _ in batch]
            try:
                outcomes = await self._outcomes(members)
                for member, outcome in zip(members, outcomes, strict=True):
                    if isinstance(outcome, LedgerAlarm):
                        await loop.run_in_executor(self._thread, self._on_alarm, member)
            except Exception as error:
                # Every waiting request gets an outcome, even after an unexpected error. Committed
                # charges are kept.
                outcomes = [error.with_traceback(None) for _ in batch]
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.done():
                    continue  # the caller was cancelled; the committed rows are kept
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    async def _outcomes(self, members: Sequence[Any]) -> Sequence[Any]:
        try:
            outcomes = await self._committed(members)
            assert len(outcomes) == len(members), "every member has one outcome"
            return outcomes
        except (Busy, CommitUnknown, StreamAlarm) as error:
            # Nothing is written, or it is unknown whether the commit succeeded. So every request
            # gets the same error. After a StreamAlarm a second attempt would succeed and hide the
            # alarm.
            return [type(error)(*error.args) for _ in members]
        except Exception as error:
            if len(members) == 1:
                return [error]
            # One request of the batch has failed. Each then gets a transaction of its own, so the
            # others succeed.
            return [one for member in members for one in await self._outcomes([member])]

    async def _committed(self, members: Sequence[Any]) -> Sequence[Any]:
        """Commits one batch. Raises if nothing was written, or if the result is unknown."""

        def work(connection: Connection) -> Sequence[Any]:
            return self._run(connection, members)

        if self._database.embedded and not self._closed:
            try:
                transaction = self._database.begin(wait=False)
                outcomes = transaction.run(work)
                try:
                    loop = asyncio.get_running_loop()
                    commit = loop.run_in_executor(self._disk, transaction.commit)
                except RuntimeError:
                    # The service is stopping and has closed its threads, so the transaction is
                    # committed in this one.
                    transaction.commit()
                else:
                    await commit
                return outcomes
            except Again:
                pass  # nothing is written; the thread below tries again, and may wait for the lock
        return await self.alone(partial(self._database.write, work))


class _Queue:
    """The members of one event loop that wait for a batch, and the task that commits them."""

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.worker: asyncio.Task[None] | None = None
