"""The file descriptors of one process, and how many of them connections may take.

Danger: a process without a free descriptor can neither commit a charge nor open records. So
connections get what is left of ``RLIMIT_NOFILE`` after the reserve for ledger and records.
"""

import resource

#: File descriptors reserved for the ledger, records, the object store, workers, logs and files that
#: are open briefly.
RESERVED = 512
#: The most connections that wait in the queue of the operating system. One pass of the event loop
#: may accept them all before the limit on connections counts them, so descriptors are reserved.
BACKLOG = 256
#: The most connections of a process whose setting names no limit. Each connection may hold
#: half-received headers in memory.
MOST_CONNECTIONS = 2048
#: A process that has descriptors for fewer connections than this refuses to start.
FEWEST_CONNECTIONS = 32


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard limit; returns the limit in effect."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft


def connections_within(descriptors: int, limit: int | None = None) -> int:
    """The connections of a process with this many descriptors, at most ``limit`` if it is set.

    Raises: ValueError if fewer than ``FEWEST_CONNECTIONS`` are left beside the reserve.
    """
    free = descriptors - RESERVED - BACKLOG
    if free < FEWEST_CONNECTIONS:
        needed = RESERVED + BACKLOG + FEWEST_CONNECTIONS
        raise ValueError(f"the process may open {descriptors} files and needs {needed}")
    return min(free, MOST_CONNECTIONS if limit is None else limit)
