"""Names for queries that sort by time (RFC 9562, version 7), so that indexes stay compact."""

from __future__ import annotations

import os
import threading
import time
from uuid import UUID

_BLOCK = 4096
_lock = threading.Lock()
_left = b""


def random_bytes(count: int) -> bytes:
    """Of the system, for names. Asked for in blocks: each time it is asked, threads take turns."""
    global _left
    with _lock:
        if len(_left) < count:
            _left = os.urandom(_BLOCK)
        taken, _left = _left[:count], _left[count:]
    return taken


def uuid7() -> UUID:
    """48 bits of milliseconds, then random bits."""
    value = (time.time_ns() // 10**6) << 80 | int.from_bytes(random_bytes(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def _forget() -> None:
    global _left
    _left = b""


# A process and its child must not give the same names.
os.register_at_fork(after_in_child=_forget)
