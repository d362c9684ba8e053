"""Where work runs: threads, because compiled kernels hold no interpreter lock.

Two pools, so that a query waiting for its kernels never takes the place of the kernels: *jobs*
run whole queries, *kernels* run the equal-cost parts that queries and preparations are cut into.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from mechanisms.model.executor import Executor
from storage.database.database import Database

P = ParamSpec("P")
Part = TypeVar("Part")
Result = TypeVar("Result")


class ThreadExecutor(Executor):
    """Runs the parts of one kernel on a pool of threads (``mechanisms.model.executor``)."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="kernel")

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        cut = list(parts)
        # To wake a thread takes longer than the whole of a small kernel.
        return list(self._pool.map(kernel, cut)) if len(cut) > 1 else list(map(kernel, cut))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


async def inline_if_embedded(
    database: Database, look_up: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> Result:
    """Runs a look-up inline on SQLite (microseconds) and in a thread on PostgreSQL."""
    if database.embedded:
        return look_up(*args, **kwargs)
    return await asyncio.to_thread(look_up, *args, **kwargs)


class Execution:
    """The pools of one service process."""

    def __init__(
        self,
        workers: int,
        places: int,
        elsewhere: Callable[[Executor], Executor] = lambda threads: threads,
    ) -> None:
        self._threads = ThreadExecutor(workers)
        #: Threads, or what spreads large work over other machines too.
        self.kernels = elsewhere(self._threads)
        self._jobs = ThreadPoolExecutor(places, thread_name_prefix="job")

    def job(
        self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[Result]:
        """Run a whole query, whose place (``app.engine.places``) is a thread of its own."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._jobs, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._jobs.shutdown(wait=True, cancel_futures=True)
        self._threads.close()
