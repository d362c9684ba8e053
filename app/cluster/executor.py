"""The executor of a service that has a cluster: what is large enough is spread over its workers.

A worker that is lost costs time: its tasks are done again by others. When the scheduler is lost,
or there is no worker, the work fails, and with it the preparation or the query; it is never done
here instead, where nobody has planned for it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from secrets import token_hex
from threading import Lock
from typing import TypeVar

from distributed import Client, Future, Security, as_completed

from app.cluster import tasks
from mechanisms.kernels.executor import Arrays, Executor, Found, InProcess, Part
from storage.scratch import Scratch

Result = TypeVar("Result")

#: Seconds until a scheduler that does not answer, or has no worker to offer, is given up.
PATIENCE = 30


class ClusterFailed(RuntimeError):
    """The scheduler, all workers or the work itself failed; of the records it says nothing."""


class ClusterExecutor(InProcess):
    """Threads for what is small, and a cluster from ``worth`` steps of work on."""

    def __init__(
        self,
        threads: Executor,
        address: str,
        security: Security | None,
        scratch: Scratch,
        worth: int,
        patience: float = PATIENCE,
    ) -> None:
        self.workers = threads.workers
        self._threads, self._scratch, self._worth = threads, scratch, worth
        self._address, self._security, self._patience = address, security, patience
        self._client: Client | None = None
        self._lock = Lock()

    def map(self, kernel: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return self._threads.map(kernel, parts)

    def spread(
        self,
        kernel: Callable[[Arrays, Part], Found],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,
        done: Callable[[int], None] | None = None,
    ) -> list[Found]:
        if work < self._worth:
            return self._threads.spread(kernel, arrays, cut, work=work, done=done)
        client = self._connected()
        parts = cut(_threads_of(client, self._patience))
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
        """Have every part done. Raises: ClusterFailed, and what ``done`` raises."""
        numbers: dict[str, int] = {}
        futures: list[Future[None]] = []
        try:
            for part in range(parts):
                key = token_hex(16)
                numbers[key] = part
                futures.append(client.submit(tasks.run, name, part, key=key, pure=False))
            for future in as_completed(futures, loop=client.loop):
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

    def _connected(self) -> Client:
        """The connection, made anew when it was lost. Raises: ClusterFailed."""
        with self._lock:
            if self._client is not None and self._client.status != "running":
                _close(self._client)
                self._client = None
            if self._client is None:
                try:
                    self._client = Client(
                        self._address,
                        security=self._security,
                        timeout=self._patience,
                        set_as_default=False,
                        name="privypurse",
                    )
                except (OSError, TimeoutError, RuntimeError) as error:
                    raise ClusterFailed("the scheduler cannot be reached") from error
            return self._client


def _threads_of(client: Client, patience: float) -> int:
    """How many parts the workers do at the same time. Raises: ClusterFailed without any."""
    try:
        client.wait_for_workers(1, timeout=patience)
        return sum(client.nthreads().values())
    except (CancelledError, OSError, TimeoutError) as error:
        raise ClusterFailed("there is no worker") from error


def _close(client: Client) -> None:
    with suppress(Exception, CancelledError):
        client.close(timeout=1)
