"""Ways that are measured in turn, round by round, so that all of them meet the same machine.

What other work does to the machine hits every way of a round alike, so ratios are taken within a
round, and their median counts. Every second round goes through the ways backwards.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Self, TypeVar

from benchmarks.result import Cell, Result

Value = TypeVar("Value")
#: One of the ways that are compared. A call measures it once, and returns seconds or a number per
#: second.
Way = Callable[[], float]


@dataclass(frozen=True)
class Rounds:
    """Values of each way, one per round."""

    unit: str
    values: Mapping[str, list[float]]

    @classmethod
    def of(cls, unit: str, ways: Mapping[str, Way], rounds: int, warm: int = 1) -> Self:
        """Run every way once per round. The first ``warm`` rounds do not count: they compile,
        connect and fill caches."""
        values: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(warm + rounds):
            for name in list(ways)[:: -1 if number % 2 else 1]:
                value = ways[name]()
                if number >= warm:
                    values[name].append(value)
        return cls(unit, values)

    def median(self, name: str) -> float:
        return median(self.values[name])

    def ratio(self, one: str, other: str) -> float:
        """How many times the value of ``other`` that of ``one`` is: the median over rounds."""
        pairs = zip(self.values[one], self.values[other], strict=True)
        return median(mine / theirs for mine, theirs in pairs)

    def report(self, result: Result, title: str) -> Self:
        """Put the medians into a table, and all values beside it."""
        count = len(next(iter(self.values.values())))
        rows: list[list[Cell]] = [[name, self.median(name)] for name in self.values]
        result.table(f"{title}: medians of {count} rounds", ["way", self.unit], rows)
        result.stored[title] = {name: list(values) for name, values in self.values.items()}
        return self


def wall(work: Callable[[], object], rest: float = 0.0) -> Way:
    """The seconds by the clock that ``work`` takes, begun after a ``rest`` that does not count."""

    def way() -> float:
        time.sleep(rest)
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return way


def clocked(work: Callable[[], Value]) -> tuple[float, Value]:
    """The seconds by the clock that one run takes, and what it returns."""
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def processor(work: Callable[[], object]) -> Way:
    """The seconds of a processor, which other work on the machine disturbs least."""

    def way() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return way


def in_own_process(work: Callable[..., Value], *arguments: object) -> Value:
    """What ``work`` returns in a fresh process, whose memory and threads are its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def memory(field: str, process: int | str = "self") -> float:
    """A field of a process's /proc status in MB (Linux): VmRSS now, VmHWM the most so far."""
    status = Path(f"/proc/{process}/status").read_text("ascii").split()
    return int(status[status.index(field + ":") + 1]) / 1024
