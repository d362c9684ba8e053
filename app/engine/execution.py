"""Thread pools. Work runs in threads, because compiled kernels release the interpreter lock.

The pool of jobs runs whole queries. The pool of kernels runs the parts, of equal cost, of a query
or a preparation. With one pool, queries that wait for their kernels could block these kernels.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import ParamSpec, TypeVar

from mechanisms.model.executor import Executor
from storage.database.database import Database

P = ParamSpec("P")
Part = TypeVar("Part")
Result = TypeVar("Result")


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """A pool whose threads all exist: after a charge, no thread may fail to start."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    # A pool starts a thread only if none is idle. So this barrier keeps every thread busy until all
    # exist.
    busy = Barrier(threads + 1)
    for _ in range(threads):
        pool.submit(busy.wait)
    busy.wait()
    return pool


class ThreadExecutor(Executor):
    """Runs the parts of one kernel on a pool of threads (``mechanisms.model.executor``)."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = started_pool(workers, "kernel")

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        cut = list(parts)
        # A single part is computed in the present thread: waking another can take longer than the
        # kernel.
        return list(self._pool.map(kernel, cut)) if len(cut) > 1 else list(map(kernel, cut))

    def close(self) -> None:
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
        self._threads = ThreadExecutor(workers)
        #: The executor of kernels: these threads, or an executor that also sends large work to
        #: other machines.
        self.kernels = elsewhere(self._threads)
        # Heavy queries need one thread per slot. Light queries hold no slot, so those that do not
        # run on the event loop need further threads.
        self._jobs = started_pool(slots + workers, "job")

    def inline(
        self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[Result]:
        """Run a whole query here and now; returns its future, which is done."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    def job(
        self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[Result]:
        """Run a whole query; ``app.engine.schedule`` admits one heavy query per slot."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._jobs, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._jobs.shutdown(wait=True, cancel_futures=True)
        self._threads.close()
