"""The HTTP server: its protocol, its limits, its processes, and how it stops.

Several processes share one socket, one database and one data folder, as replicas do. uvicorn
watches them, and replaces one that has ended or hangs.
"""

import ctypes
import errno
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from app.config.descriptors import BACKLOG, connections_within
from app.config.settings import Settings
from app.http.connections import Connections, Limits
from app.http.protocol import GuardedProtocol
from app.telemetry.metrics import FOLDER

#: Seconds for which an idle connection stays open after a reply.
KEEP_ALIVE = 5
#: Seconds that running requests have to end after SIGTERM.
GRACE = 30
#: The parent process pings each serving process. One that sends no reply for this many seconds is
#: killed and replaced. Compiling and measuring delay a reply by some seconds. A process
#: that starts on a busy machine may need much longer for its first reply.
HUNG = 60
#: The number of Linux's ``prctl`` option by which a process gets a signal when its parent ends.
PR_SET_PDEATHSIG = 1
#: When Python's garbage collector runs: after this many new objects, and on older ones after every
#: so many runs. With the default of 700, 10 and 10 it takes 5 % of the time of each query. The
#: requests of 32 connections hold some thousand objects, so even after 2,000 it finds nothing to
#: free. A run on 10,000 objects takes half a millisecond. A run on 50,000 new objects, or on all
#: objects, stops every query for 10 to 40 ms, as long as a deadline.
COLLECT_AFTER = 10_000, 2, 200


def limits(settings: Settings, descriptors: int) -> Limits:
    """The limits of connections in a process that may open this many files. Raises: ValueError."""
    connections = connections_within(descriptors, settings.connections)
    per_address = settings.connections_per_address or max(1, connections // 2)
    return Limits(
        connections=connections,
        per_address=min(per_address, connections),
        proxies=settings.proxies,
        head_bytes=settings.header_limit,
        head_seconds=settings.header_timeout,
        stall_seconds=settings.body_timeout,
    )


def server_config(
    create: Callable[[Settings], FastAPI], settings: Settings, descriptors: int
) -> uvicorn.Config:
    """The configuration of a server; ``create`` makes the application in each of its processes.

    Raises: ValueError for too few descriptors.
    """
    protocol: Any = partial(GuardedProtocol, Connections(limits(settings, descriptors)))
    return uvicorn.Config(
        partial(_application, create, settings.of_each_process()),
        factory=True,
        workers=settings.processes,
        host=settings.host,
        port=settings.port,
        loop="auto",
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        timeout_worker_healthcheck=HUNG,
    )


def is_taken(host: str, port: int) -> bool:
    """Whether another program listens on this address and port already."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As uvicorn does: a port whose last connections are just closed can be used again.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def run(config: uvicorn.Config) -> None:
    """Serve until a signal says stop, or exit with uvicorn's status of a failed start."""
    if config.workers == 1:
        uvicorn.Server(config).run()
        return
    with TemporaryDirectory(prefix="privypurse-metrics-") as folder:
        os.environ[FOLDER] = folder
        watching = Multiprocess(config, [config.bind_socket()])
        watching.run()
    # If a process fails to start, uvicorn stops all processes. This one then exits with the same
    # status, so that a service manager can start all of them again.
    if any(one.exitcode == STARTUP_FAILURE for one in watching.processes):
        sys.exit(STARTUP_FAILURE)


def _application(create: Callable[[Settings], FastAPI], settings: Settings) -> FastAPI:
    gc.set_threshold(*COLLECT_AFTER)
    if settings.processes > 1:
        _follow_parent()
        for file in Path(os.environ[FOLDER]).glob("gauge_live*.db"):
            pid = int(file.stem.rpartition("_")[2])
            try:
                os.kill(pid, 0)  # Signal 0 only asks whether the process exists.
            except ProcessLookupError:
                mark_process_dead(pid)  # type: ignore[no-untyped-call]  # not annotated
    return create(settings)


def _follow_parent() -> None:
    """End when the parent process ends, also if that is killed, so that the port is free."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        sys.exit("the process that watches this one has ended")
