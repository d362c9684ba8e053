"""Thread pools. Work runs in threads, because compiled kernels release the interpreter lock.

The pool of jobs runs whole queries. The pools of kernels run the parts, of equal cost, of a query
or a preparation. With one pool, queries that wait for their kernels could block these kernels.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import ParamSpec, TypeVar

from mechanisms.model.executor import Executor
from storage.database.database import Database

#: Seconds after which a thread that waits for the interpreter lock makes its holder release it.
#: Work takes the lock again after every compiled kernel. With the 5 ms that Python has by default,
#: it would wait longer than it works.
SWITCH_INTERVAL = 0.0001

P = ParamSpec("P")
Part = TypeVar("Part")
Result = TypeVar("Result")


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """A pool whose threads all exist: after a charge, no thread may fail to start."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    # A pool starts a thread only if none is idle. This barrier keeps every thread busy until all
    # exist, so that none has to be started after a charge.
    busy = Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(busy.wait)
    busy.wait()
    return pool


class ThreadExecutor(Executor):
    """Runs the parts of kernels on a pool of threads (``mechanisms.model.executor``).

    Each call uses ``workers`` threads at most, so calls of as many users as the pool has room for
    never wait for each other's parts.
    """

    def __init__(self, workers: int, users: int = 1) -> None:
        self.workers = workers
        # A single worker is the calling thread: waking another can take longer than the kernel (the
        # compiled loop) runs.
        self._pool = started_pool(workers * users, "kernel") if workers > 1 else None

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        cut = list(parts)
        count = min(self.workers, len(cut))
        if self._pool is None or count < 2:
            return list(map(kernel, cut))
        results: dict[int, Result] = {}
        failed = Event()

        def run(first: int) -> None:
            for number in range(first, len(cut), count):
                if failed.is_set():
                    return
                try:
                    results[number] = kernel(cut[number])
                except BaseException:
                    failed.set()
                    raise

        for thread in [self._pool.submit(run, first) for first in range(count)]:
            thread.result()
        return [results[number] for number in range(len(cut))]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


async def inline_if_embedded(
    database: Database, look_up: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> Result:
    """Run a look-up inline on SQLite (microseconds) and in a thread on PostgreSQL."""
    if database.embedded:
        return look_up(*args, **kwargs)
    return await asyncio.to_thread(look_up, *args, **kwargs)


class Execution:
    """The pools of one service process."""

    def __init__(
        self,
        workers: int,
        slots: int,
        elsewhere: Callable[[Executor], Executor] = lambda threads: threads,
    ) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        # Heavy queries need one thread per slot. Light queries hold no slot, so those that do not
        # run on the event loop need further threads.
        jobs = slots + workers
        share = -(-workers // slots)
        self._threads = ThreadExecutor(workers), ThreadExecutor(share, jobs + 1)
        #: The executors of compiled kernels: these threads, or executors that also send large work
        #: to other machines. One preparation of uploaded records may take all processors. A query
        #: takes its share of them, as its public cost does, even if the other slots are idle.
        self.preparation, self.queries = map(elsewhere, self._threads)
        self._jobs = started_pool(jobs, "job")

    def inline(
        self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[Result]:
        """Run a whole query here and now; returns its future, which is done."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work(*args, **kwargs))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # As a pool of threads does, this catches also the panics of libraries in other
            # languages, which are no ``Exception``.
            # The traceback would refer to this frame and so to ``done``: a cycle.
            done.set_exception(error.with_traceback(None))
        return done

    def job(
        self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[Result]:
        """Run a whole query; ``app.engine.schedule`` admits one heavy query per slot."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._jobs, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._jobs.shutdown(wait=True, cancel_futures=True)
        for threads in self._threads:
            threads.close()
