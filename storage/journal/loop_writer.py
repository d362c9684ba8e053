"""Group commit for an event loop whose database takes microseconds a statement, such as SQLite.

The statements of a batch run on the loop itself, between two of its callbacks; only the commit,
which waits for the disk, has a thread. Two threads that take turns at the interpreter's lock for
every statement take many times what the statements take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from storage.errors import Busy, CommitUnknown
from storage.journal.writer import Failed, resolve

Member = TypeVar("Member")
Outcome = TypeVar("Outcome")
Outcomes = Sequence[Outcome | Failed]

#: A loop answers nobody else for as long as this many members take: some milliseconds.
MOST = 64


class LoopWriter(Generic[Member, Outcome]):
    """Commits members in batches; safe to use from any event loop.

    Args:
        begin: runs the members in a transaction that is left open, and returns what commits it and
            tells their outcomes; None when it would have had to wait or anything went wrong, and
            nothing is written then.
        otherwise: runs and commits the members, and may wait (``Writer.outcomes``).
    """

    def __init__(
        self,
        begin: Callable[[Sequence[Member]], Callable[[], Outcomes[Outcome]] | None],
        otherwise: Callable[[Sequence[Member]], Outcomes[Outcome]],
    ) -> None:
        self._begin, self._otherwise = begin, otherwise
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="commit")
        # What waits for its turn must not stand in the way of the commit that will give it.
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="turn")
        self._closed = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def run_async(self, member: Member) -> Outcome:
        """The outcome of ``member`` once its transaction is committed.

        A caller that goes away changes nothing. Raises: what refuses the member; Busy;
        CommitUnknown.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        queue = self._loops.get(loop) or self._loops.setdefault(loop, _Queue())
        queue.waiting.append((member, future))
        if queue.worker is None or queue.worker.done():
            # It begins when all that is ready now has run, and so has put its members in, too.
            queue.worker = loop.create_task(self._work(loop, queue.waiting))
        return await future

    def close(self) -> None:
        """Refuse what comes later, and end the thread once it has committed what was begun."""
        self._closed = True
        self._waiting.shutdown()
        self._disk.shutdown()

    async def _work(self, loop: asyncio.AbstractEventLoop, waiting: deque[Any]) -> None:
        while waiting:
            # Whoever is ready to join is let in first: the disk is dearer than a turn of the loop.
            seen = 0
            while seen < len(waiting) < MOST:
                seen = len(waiting)
                await asyncio.sleep(0)
            batch = [waiting.popleft() for _ in range(min(len(waiting), MOST))]
            try:
                outcomes = await self._outcomes(loop, [member for member, _ in batch])
            except Exception as error:
                # Whatever went wrong, nobody waits for ever; a charge that stands then, stands.
                outcomes = [Failed(error) for _ in batch]
            resolve(
                [(future, outcome) for (_, future), outcome in zip(batch, outcomes, strict=True)]
            )

    async def _outcomes(
        self, loop: asyncio.AbstractEventLoop, members: Sequence[Member]
    ) -> Outcomes[Outcome]:
        if self._closed:
            raise Busy("the service is stopping; nothing was written")
        commit = self._begin(members)
        if commit is None:
            return await loop.run_in_executor(self._waiting, self._otherwise, members)
        try:
            outcomes = loop.run_in_executor(self._disk, self._committed, commit, members)
        except RuntimeError:
            # The service was closed in between: what was begun is ended here.
            return self._committed(commit, members)
        return await outcomes

    def _committed(
        self, commit: Callable[[], Outcomes[Outcome]], members: Sequence[Member]
    ) -> Outcomes[Outcome]:
        try:
            return commit()
        except Busy:
            return self._otherwise(members)  # nothing stands: run it all again
        except CommitUnknown as error:
            return [Failed(type(error)(*error.args)) for _ in members]


class _Queue:
    """The members of one loop that wait for their batch, and the task that is at work on them."""

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.worker: asyncio.Task[None] | None = None
