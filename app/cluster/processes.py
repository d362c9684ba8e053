"""Runs a scheduler or a worker in this process, until SIGTERM or Ctrl-C."""

import asyncio
import signal
import tempfile
from typing import Any

import dask.config
from distributed import Security

from app.cluster import tasks
from app.cluster.roles import GuardedScheduler, GuardedWorker
from storage.files.shared import Shared

#: Disables the web pages and profiles of Dask, which could show private data. Also disables its
#: spilling to disk, which is not needed: arrays pass through mapped files and not through its
#: memory.
QUIET: dict[str, Any] = {
    "distributed.scheduler.http.routes": ["distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.health"],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.no-workers-timeout": "30s",
    "distributed.scheduler.worker-ttl": "60s",
}

#: Seconds between two searches for jobs (pieces of work that the service shared out) that have
#: ended. The worker then closes their files.
TIDY = 60.0


def run_scheduler(host: str, port: int, security: Security | None) -> None:
    """Hand out work on ``host:port``, over TLS with ``security``."""
    asyncio.run(_scheduler(host, port, security))


def run_worker(
    scheduler: str,
    shared: Shared,
    threads: int,
    host: str | None,
    security: Security | None,
) -> None:
    """Run tasks of the scheduler at an address; reconnect whenever it is lost."""
    tasks.use(shared)
    asyncio.run(_worker(scheduler, threads, host, security))


async def _scheduler(host: str, port: int, security: Security | None) -> None:
    stop = _stopping()
    with dask.config.set(QUIET):
        scheduler = GuardedScheduler(
            host=host,
            port=port,
            protocol="tcp" if security is None else "tls",
            security=security,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
        )
        async with scheduler:
            await stop.wait()


async def _worker(address: str, threads: int, host: str | None, security: Security | None) -> None:
    stop = _stopping()
    tidying = asyncio.create_task(_tidy())
    with dask.config.set(QUIET), tempfile.TemporaryDirectory() as local:
        while not stop.is_set():
            worker = GuardedWorker(
                address,
                nthreads=threads,
                host=host,
                security=security,
                dashboard=False,
                dashboard_address="127.0.0.1:0",
                local_directory=local,
                memory_limit=0,
            )
            stopped = asyncio.create_task(stop.wait())
            # Without a scheduler, a Dask worker waits without limit. Each step therefore also ends
            # when the process receives SIGTERM or SIGINT.
            for step in (worker.start, worker.finished):
                under_way = asyncio.ensure_future(step())
                await asyncio.wait({under_way, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if not under_way.done():
                    under_way.cancel()
                    break
                under_way.result()
            stopped.cancel()
            await worker.close(timeout=1)
    tidying.cancel()


async def _tidy() -> None:
    while True:
        await asyncio.sleep(TIDY)
        await asyncio.to_thread(tasks.tidy)


def _stopping() -> asyncio.Event:
    """Returns an event that SIGTERM or SIGINT sets."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
