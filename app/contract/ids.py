"""Names for queries that sort by time (RFC 9562, version 7), so that indexes stay compact."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """48 bits of milliseconds, then random bits."""
    value = (time.time_ns() // 10**6) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)
