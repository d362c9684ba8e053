"""The executor of a service with a cluster. Large work runs on the workers of the cluster.

When a worker is lost, other workers repeat its tasks. When the scheduler is lost or does not reply,
or there is no worker, the preparation or the query fails. It never runs in the service process
instead, whose memory and processors may be too small for it.
"""

import time
from asyncio import CancelledError, wait_for
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from secrets import token_hex
from threading import Lock
from typing import Any, TypeVar

from distributed import Client, Future, Security

from app.cluster import tasks
from mechanisms.model.executor import Arrays, Executor, ExecutorFailed, Part, PartResult
from storage.cluster.scratch import Scratch
from storage.files.shared import Shared

Result = TypeVar("Result")

#: A Dask scheduler that has no workers for this many seconds counts as failed.
PATIENCE = 30.0
#: A Dask scheduler that sends no reply for this many seconds counts as failed. A stopped process
#: keeps its connections open, so the state of a connection does not show this failure.
SILENCE = 10.0
#: Seconds between two checks that the Dask scheduler still replies, while its workers compute parts
#: of a query.
BEAT = 5.0


class ClusterFailed(ExecutorFailed):
    """The scheduler, all workers or the work itself failed. The text reveals no records."""


class ClusterExecutor(Executor):
    """Runs work below ``worth`` steps on threads, and all other work on a cluster."""

    def __init__(
        self,
        threads: Executor,
        address: str,
        security: Security | None,
        shared: Shared,
        worth: int,
        patience: float = PATIENCE,
    ) -> None:
        self.workers = threads.workers
        self._threads, self._scratch, self._worth = threads, Scratch(shared), worth
        self._address, self._security, self._patience = address, security, patience
        self._silence = min(SILENCE, patience)
        self._client: Client | None = None
        self._lock = Lock()
        #: The time of the last failed attempt to connect. Threads that waited during that attempt
        #: fail with it and do not connect themselves.
        self._failed: float | None = None

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return self._threads.map(kernel, parts)

    def spread(
        self,
        kernel: Callable[[Arrays, Part], PartResult],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,
        done: Callable[[int], None] | None = None,
    ) -> list[PartResult]:
        if work < self._worth:
            return self._threads.spread(kernel, arrays, cut, work=work, done=done)
        client = self._connected()
        parts = cut(self._threads_of(client))
        with self._scratch.job(kernel, arrays, parts) as name:
            self._run(client, name, len(parts), done)
            try:
                return [self._scratch.read(name, part) for part in range(len(parts))]
            except FileNotFoundError:
                raise ClusterFailed("a worker could not do its part") from None

    def close(self) -> None:
        if self._client is not None:
            _close(self._client)

    def _run(
        self, client: Client, name: str, parts: int, done: Callable[[int], None] | None
    ) -> None:
        """Run every part on the cluster. Raises: ClusterFailed, and the errors of ``done``."""
        numbers: dict[Any, int] = {token_hex(16): part for part in range(parts)}
        futures: list[Future[None]] = []
        finished: SimpleQueue[Future[None]] = SimpleQueue()
        try:
            for key, part in numbers.items():
                futures.append(client.submit(tasks.run, name, part, key=key, pure=False))
                futures[-1].add_done_callback(finished.put)
            for _ in range(parts):
                future = self._next(finished, client)
                if future.status != "finished":
                    raise ClusterFailed("the scheduler or all workers were lost")
                if done is not None:
                    done(numbers[future.key])
        except BaseException as error:
            with suppress(Exception, CancelledError):
                client.cancel(futures)
            if isinstance(error, CancelledError | OSError | TimeoutError):
                raise ClusterFailed("the scheduler was lost") from error
            raise
        finally:
            for future in futures:
                future.release()

    def _next(self, finished: SimpleQueue[Future[None]], client: Client) -> Future[None]:
        """The next part that ends. Raises: ClusterFailed when the scheduler does not reply."""
        while True:
            with suppress(Empty):
                return finished.get(timeout=BEAT)
            self._ask(client)

    def _ask(self, client: Client) -> int:
        """The number of parts that the workers can run at the same time, from the scheduler."""
        scheduler: Any = client.scheduler
        try:
            answer = client.sync(scheduler.ncores, workers=None, callback_timeout=self._silence)
            return sum(answer.values())
        except (Exception, CancelledError) as error:
            # Closing the client also wakes the other threads that wait for work on this cluster;
            # they fail.
            if self._client is client:
                self._client = None
            _close(client)
            raise ClusterFailed("the scheduler does not answer") from error

    def _threads_of(self, client: Client) -> int:
        """The number of threads of all workers, at least one. Raises: ClusterFailed if none."""
        deadline = time.monotonic() + self._patience
        while not (threads := self._ask(client)):
            if time.monotonic() > deadline:
                raise ClusterFailed("there is no worker")
            time.sleep(0.1)
        return threads

    def _connected(self) -> Client:
        """The connection to the scheduler, replaced if it was lost. Raises: ClusterFailed."""
        requested = time.monotonic()
        with self._lock:
            if self._failed is not None and self._failed > requested:
                raise ClusterFailed("the scheduler cannot be reached")
            client, self._client = self._client, None
            if client is not None and client.status != "running":
                _close(client)
                client = None
            try:
                self._client = client or self._connect()
            except (OSError, TimeoutError, RuntimeError) as error:
                self._failed = time.monotonic()
                raise ClusterFailed("the scheduler cannot be reached") from error
            return self._client

    def _connect(self) -> Client:
        return _Client(
            self._address,
            security=self._security,
            timeout=self._silence,
            set_as_default=False,
            name="privypurse",
        )


class _Client(Client):
    """Dask's client with a time limit. Dask alone waits without limit for a first message."""

    async def _ensure_connected(self, timeout: float | None = None) -> None:
        await wait_for(super()._ensure_connected(timeout), timeout or SILENCE)


def _close(client: Client) -> None:
    with suppress(Exception, CancelledError):
        client.close(timeout=1)
