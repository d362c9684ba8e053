"""Timeouts of tests. They are long, so that no test fails because the machine is busy.

A test that passes never reaches a timeout, so shorter ones would save no time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds that a test waits for a condition before it fails.
PATIENCE = 180.0
#: A request with this header waits up to 300 seconds for its answer, because numeric kernels may
#: have to be compiled first.
WAIT = {"Prefer": "wait=300"}
#: Seconds after which a test client gives up. It is longer than ``WAIT`` lets the service take.
REPLY = 360.0


def until(true: Callable[[], object], what: str = "", pause: float = 0.02) -> None:
    """Poll until ``true`` returns a true value; fail with ``what`` after ``PATIENCE`` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(pause)
