"""Ids of queries that sort by time (UUID version 7, RFC 9562), so that indexes stay compact."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """A new id: 48 bits of milliseconds since 1970, then random bits beside the version's marks."""
    value = (time.time_ns() // 10**6) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)
