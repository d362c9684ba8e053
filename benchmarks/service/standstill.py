"""When the processors of this machine stood still, whatever ran on them.

On a virtual machine the host stops processors for milliseconds, and no program there can prevent
it. So a process with real-time priority wakes up every few milliseconds on each processor. All
other processes yield to it: if it wakes up late, the processor stood still.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

#: The seconds between two times at which a process wakes up, and how late it must be.
NAP, LATE = 0.004, 0.004


@dataclass
class Standstills:
    """Begins and ends in seconds since 1970, by processor. They are there after the watch."""

    by_processor: dict[int, list[tuple[float, float]]] = field(default_factory=dict)

    def seconds(self, begin: float, end: float) -> float:
        """How long one processor stood still between two times; the most of all processors."""
        return max(
            (
                sum(max(0.0, min(last, end) - max(first, begin)) for first, last in of)
                for of in self.by_processor.values()
            ),
            default=0.0,
        )


@contextmanager
def watched() -> Iterator[Standstills]:
    """Watch all processors until the block ends. Without real-time priority, there are none."""
    standstills, ends = Standstills(), dict[int, Connection]()
    context = get_context("spawn")
    for processor in sorted(os.sched_getaffinity(0)) if is_allowed() else ():
        ends[processor], theirs = context.Pipe()
        context.Process(target=watch, args=(processor, theirs), daemon=True).start()
        ends[processor].recv()
    yield standstills
    for processor, end in ends.items():
        end.send("stop")
        standstills.by_processor[processor] = end.recv()


def is_allowed() -> bool:
    """Whether this user may have real-time priority (Linux: root may)."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def watch(processor: int, end: Connection) -> None:
    """Watch one processor until something comes through ``end``; then send all standstills."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    late = []
    end.send("ready")
    before = time.time()
    while not end.poll():
        time.sleep(NAP)
        now = time.time()
        if now - before >= NAP + LATE:
            late.append((before + NAP, now))
        before = now
    end.send(late)
