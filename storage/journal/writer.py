"""Group commit: gather → begin → run → commit → tell, one batch after another.

While a commit waits for the disk, new members gather, and the next transaction takes them all.
Nobody is told anything before the commit of their batch has returned: an outcome that is told
earlier may be one that never stood.

On SQLite a statement takes microseconds, so a batch begins and runs on the event loop itself, and
only its commit takes a thread. Two threads that alternate at the interpreter's lock for every
statement take many times what the statements take. On PostgreSQL a thread does all three.
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
from storage.errors import Busy, CommitUnknown, LedgerAlarm

T = TypeVar("T")

#: A loop serves nobody else for as long as this many members take: some milliseconds.
MOST_INLINE = 64
#: A transaction in a thread holds its locks for no longer than this many members take.
MOST = 512


class Writer:
    """Commits members in batches; safe to use from any event loop.

    Args:
        run: the outcomes of members in their order, inside a transaction; an exception for a
            member that is refused and has written nothing.
        on_alarm: called in a thread with each member that a constraint has stopped.
    """

    def __init__(
        self,
        database: Database,
        run: Callable[[Connection, Sequence[Any]], Sequence[Any]],
        on_alarm: Callable[[Any], None],
    ) -> None:
        self._database, self._run, self._on_alarm = database, run, on_alarm
        self._most = MOST_INLINE if database.embedded else MOST
        # Two threads: whoever waits for the write lock must not block the commit that frees it.
        self._disk: Executor = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._thread: Executor = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._closed = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def run(self, member: Any) -> Any:
        """Returns the outcome of ``member`` once its transaction is committed.

        A caller that goes away changes nothing. Raises: what refuses the member; Busy, also while
        closing; CommitUnknown.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        queue = self._loops.get(loop) or self._loops.setdefault(loop, _Queue())
        queue.waiting.append((member, future))
        if queue.worker is None or queue.worker.done():
            queue.worker = loop.create_task(self._work(queue.waiting))
        return await future

    async def alone(self, call: Callable[[], T]) -> T:
        """Makes a call with any other transaction: it may be long, so it has a thread and no batch.

        A caller that goes away changes nothing. Raises: what ``call`` raises; Busy while closing.
        """
        if self._closed:
            raise Busy("the service is stopping; nothing was written")
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, call))

    def close(self) -> None:
        """Refuse what comes later, and end the threads once they have committed what was begun."""
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
                # Resolves every waiter even after an unexpected error. Committed charges stand.
                outcomes = [error for _ in batch]
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.done():
                    continue  # the caller has gone away; what was written stands
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    async def _outcomes(self, members: Sequence[Any]) -> Sequence[Any]:
        try:
            outcomes = await self._committed(members)
            assert len(outcomes) == len(members), "every member has one outcome"
            return outcomes
        except (Busy, CommitUnknown) as error:
            # Nothing stands, or nobody can tell: in either case no member may be told more.
            return [type(error)(*error.args) for _ in members]
        except Exception as error:
            if len(members) == 1:
                return [error]
            # One of them cannot be written, and must not take the others with it.
            return [one for member in members for one in await self._outcomes([member])]

    async def _committed(self, members: Sequence[Any]) -> Sequence[Any]:
        """Commits one batch; raises when nothing of it stands, or nobody can tell."""

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
                    # The service was closed in between: what was begun is ended here.
                    transaction.commit()
                else:
                    await commit
                return outcomes
            except Again:
                pass  # nothing stands, and the thread may wait
        return await self.alone(partial(self._database.write, work))


class _Queue:
    """The members of one loop that wait for their batch, and the task that commits them."""

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.worker: asyncio.Task[None] | None = None
