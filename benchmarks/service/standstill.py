"""When the processors of this machine stood still, whatever ran on them.

The host of a virtual machine stops its processors for milliseconds, and no program there can
prevent it. So a process with real-time priority wakes up every few milliseconds on each processor.
All other processes yield to it: if it wakes up late, the processor stood still.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

#: The seconds between two times at which a process wakes up, and the seconds by which it must be
#: late for the processor to have stood still.
NAP, LATE = 0.004, 0.004

#: Begin and end of a standstill, in seconds since 1970.
Standstill = tuple[float, float]


@contextmanager
def watched() -> Iterator[dict[int, list[Standstill]]]:
    """Watch all processors until the block ends; then their standstills are in the dictionary.

    It stays empty where this user may not have real-time priority: only root may, on Linux.
    """
    standstills: dict[int, list[Standstill]] = {}
    context = get_context("spawn")
    watchers = {}
    for processor in processors():
        connection, theirs = context.Pipe()
        process = context.Process(target=watch, args=(processor, theirs), daemon=True)
        process.start()
        connection.recv()
        watchers[processor] = process, connection
    try:
        yield standstills
    finally:
        for processor, (process, connection) in watchers.items():
            connection.send("stop")
            standstills[processor] = connection.recv()
            process.join()


def processors() -> Sequence[int]:
    """The processors that can be watched."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (AttributeError, PermissionError):  # Other systems than Linux have no such function.
        return ()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return sorted(os.sched_getaffinity(0))


def watch(processor: int, connection: Connection) -> None:
    """Watch one processor until something comes through the connection; then send standstills."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    standstills: list[Standstill] = []
    connection.send("ready")
    before = time.monotonic()
    while not connection.poll():
        time.sleep(NAP)
        now = time.monotonic()
        if (late := now - before - NAP) >= LATE:
            standstills.append((time.time() - late, time.time()))
        before = now
    connection.send(standstills)


def overlap(standstills: Mapping[int, Sequence[Standstill]], begin: float, end: float) -> float:
    """How many seconds one processor stood still between two times; the most of all processors."""
    return max(
        (
            sum(max(0.0, min(last, end) - max(first, begin)) for first, last in of_processor)
            for of_processor in standstills.values()
        ),
        default=0.0,
    )
