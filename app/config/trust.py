"""The authorities whose certificates the service believes when it connects to another server."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """The authorities that come with httpx, read once: this takes the processor 40 ms."""
    # httpx is imported here, because it takes a tenth of a second to load, and most services make
    # no connections to other servers.
    import httpx

    return httpx.create_ssl_context(trust_env=False)
