"""How long tests wait for what has to come: long, so that no test fails for a busy machine.

A test that passes never waits this long, so nothing is gained by less.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds.
PATIENCE = 180.0
#: A request with this header gets its answer, however long its kernels take to compile.
WAIT = {"Prefer": "wait=300"}
#: Seconds until a client of the service gives up: longer than the service is asked to wait.
REPLY = 360.0


def until(true: Callable[[], object], what: str = "", pause: float = 0.02) -> None:
    """Return when something holds, looked at again and again; else fail and say ``what``."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(pause)
