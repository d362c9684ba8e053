"""The HTTP server of one process: its protocol, its limits, and how it stops."""

from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from app.config.descriptors import BACKLOG, connections_within
from app.config.settings import Settings
from app.http.connections import Connections, Limits
from app.http.protocol import GuardedProtocol

#: Seconds for which an idle connection stays open after a reply.
KEEP_ALIVE = 5
#: Seconds that running requests have to end after SIGTERM.
GRACE = 30


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


def server_config(app: ASGIApp, settings: Settings, descriptors: int) -> uvicorn.Config:
    """The configuration of a server for ``app``. Raises: ValueError for too few descriptors."""
    protocol: Any = partial(GuardedProtocol, Connections(limits(settings, descriptors)))
    return uvicorn.Config(
        app,
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
    )
