"""Group commit: one thread drains a queue of changes into one transaction, again and again.

While a commit waits for the disk, new changes gather, and the next transaction takes them all: the
disk is waited for once a batch, and a row that everybody charges is locked once a batch. Nobody is
told anything before the commit of their batch has returned.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from storage.errors import Busy, CommitUnknown

Member = TypeVar("Member")
Outcome = TypeVar("Outcome")
Told = Callable[[Any], None]

#: A transaction holds its locks for no longer than this many members take.
MOST = 512


class Failed:
    """An outcome that is raised where it is waited for."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Writer(Generic[Member, Outcome]):
    """Commits members in batches; safe to use from any thread and any event loop.

    Args:
        commit: runs the members in one transaction and returns, after its commit, one outcome each
            in their order; ``Failed`` for a member that is refused and has left nothing behind.
    """

    def __init__(self, commit: Callable[[Sequence[Member]], Sequence[Outcome | Failed]]) -> None:
        self._commit = commit
        self._queue: deque[tuple[Member, Any]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        self._closing = False

    def run(self, member: Member) -> Outcome:
        """The outcome of ``member`` once its transaction is committed; blocks until then.

        Raises: what refuses the member; Busy, also while closing; CommitUnknown.
        """
        told = _Blocked()
        self._put(member, told)
        outcome: Outcome = told.wait()
        return outcome

    async def run_async(self, member: Member) -> Outcome:
        """The same for an event loop: no thread waits. A caller that goes away changes nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._put(member, (loop, future))
        return await future

    def close(self) -> None:
        """Commit what is queued, refuse what comes later, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _put(self, member: Member, waiter: Any) -> None:
        with self._changed:
            if self._closing:
                raise Busy("the service is stopping; nothing was written")
            self._queue.append((member, waiter))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
                self._thread.start()
            elif len(self._queue) == 1:
                self._changed.notify()

    def _work(self) -> None:
        queue = self._queue
        while True:
            with self._changed:
                while not queue:
                    if self._closing:
                        return
                    self._changed.wait()
                batch = [queue.popleft() for _ in range(min(len(queue), MOST))]
            outcomes = self.outcomes([member for member, _ in batch])
            _tell([(waiter, outcome) for (_, waiter), outcome in zip(batch, outcomes, strict=True)])

    def outcomes(self, members: Sequence[Member]) -> Sequence[Outcome | Failed]:
        """Commit one batch in this thread; an outcome each, in their order."""
        try:
            outcomes = self._commit(members)
            assert len(outcomes) == len(members), "every member has one outcome"
            return outcomes
        except (Busy, CommitUnknown) as error:
            # Nothing stands, or nobody knows: in either case no member may be told more.
            return [Failed(type(error)(*error.args)) for _ in members]
        except Exception as error:
            if len(members) == 1:
                return [Failed(error)]
            # One of them cannot be written, and must not take the others with it.
            return [outcome for member in members for outcome in self.outcomes([member])]


class _Blocked:
    """A thread that waits on a bare lock: the cheapest thing that can be waited on."""

    __slots__ = ("_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def tell(self, outcome: Any) -> None:
        self._outcome = outcome
        self._lock.release()

    def wait(self) -> Any:
        with self._lock:
            outcome = self._outcome
        if isinstance(outcome, Failed):
            raise outcome.error
        return outcome


def _tell(outcomes: list[tuple[Any, Any]]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for waiter, outcome in outcomes:
        if isinstance(waiter, _Blocked):
            waiter.tell(outcome)
        else:
            loop, future = waiter
            loops.setdefault(loop, []).append((future, outcome))
    for loop, told in loops.items():
        # A loop that was closed has nobody left who waits. One is woken once a batch, not a member.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(resolve, told)


def resolve(told: list[tuple[asyncio.Future[Any], Any]]) -> None:
    """Tell each future, on its own loop, its outcome."""
    for future, outcome in told:
        if future.done():
            continue  # whoever asked has gone away; what was written stands
        if isinstance(outcome, Failed):
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome)
