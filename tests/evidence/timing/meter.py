"""Counts the steps of a computation, to compare them between datasets.

It counts how often each line of ``mechanisms`` runs, the elements of arrays, the random words that
are drawn and the parts that are handed to an executor. Kernels must run as plain Python, so a
process that uses this starts with NUMBA_DISABLE_JIT=1. The steps inside a library call are not
counted: a rule of tests/architecture forbids calls whose steps depend on the values of an array.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import mechanisms
from mechanisms.model.executor import Executor
from mechanisms.model.following import FOLLOWING, Following
from mechanisms.model.randomness import Words
from mechanisms.model.work import Work

MECHANISMS = str(Path(mechanisms.__file__).parent)
#: Files that compute from released numbers alone, so their work may depend on what they read.
AFTERWARDS = ("/model/number.py", "/statistics/mean_interval.py")
AFTER = Following("it reads released numbers alone", lambda: sys.maxsize, None)
Place = tuple[str, str, int]
#: How often each line ran, by file and function.
Runs = defaultdict[tuple[str, str], defaultdict[int, int]]

#: The cost of a query counts calls of functions and units of work. One line may run at most this
#: often for each call and for each unit. A call may go through all 256 values of a byte in three
#: columns to sort them. A unit may be worked on bit by bit.
RUNS_OF_CALL, RUNS_OF_UNIT = 800, 64


def most_runs(work: Work) -> int:
    """The most runs of one line that the cost of a query with this work counts."""
    return sum(RUNS_OF_CALL * one.calls + RUNS_OF_UNIT * one.units for one in work.values())


class CountedWords:
    """Streams of the same words in every run. Implements ``Randomness`` and ``WordSource``."""

    def __init__(self, seed: int, counts: Counter[str]) -> None:
        self._generator, self._counts = np.random.default_rng(seed), counts

    def stream(self) -> CountedWords:
        self._counts["streams"] += 1
        return CountedWords(int(self._generator.integers(1 << 62)), self._counts)

    def words(self, count: int) -> Words:
        self._counts["words"] += count
        return self._generator.integers(0, 1 << 64, count, dtype=np.uint64)


class CountedParts(Executor):
    """An executor that runs each part immediately, in the calling thread, and counts the parts."""

    workers = 2

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def map(self, kernel: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
        listed = list(parts)
        self._counts["parts"] += len(listed)
        return super().map(kernel, listed)


class Function(NamedTuple):
    """What the meter asks of a function once, not for each call: hashing code takes long."""

    #: Keeps the code object alive, so that no other code object gets its id.
    code: CodeType
    counts: bool
    declaration: Following | None
    #: The file and the name of the counted function.
    place: tuple[str, str]


class Limits(NamedTuple):
    """The lines of a declared function that runs, and its public bounds."""

    runs: Runs
    bound: int
    #: The random words drawn before the call, and the most that the function may draw; None if that
    #: is not declared.
    drawn: int
    words: int | None


@dataclass
class Meter:
    """The counts of one run; declared functions count apart and only up to their bound."""

    #: Only code in files below this path is counted.
    root: str = MECHANISMS
    #: How often each line ran, how many array elements the calls of each function had when they
    #: returned. ``drawn`` counts random streams, random words and parts of work.
    lines: Counter[Place] = field(default_factory=Counter)
    elements: Counter[Place] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    #: How often each line of the declared functions ran. These counts may differ between datasets.
    followed: Counter[Place] = field(default_factory=Counter)
    #: The declared functions that ran, and reports of those that exceeded their bounds.
    declared: set[str] = field(default_factory=set)
    beyond: list[str] = field(default_factory=list)
    _open: list[Limits] = field(default_factory=list)
    _functions: dict[int, Function] = field(default_factory=dict)

    def run(self, computation: Callable[[CountedWords, CountedParts], object], seed: int) -> None:
        words, executor = CountedWords(seed, self.drawn), CountedParts(self.drawn)
        runs = no_runs()
        before = sys.gettrace()
        sys.settrace(partial(self._call, runs))
        try:
            computation(words, executor)
        finally:
            sys.settrace(before)
        self.lines.update(by_place(runs))

    def differs(self, other: Meter) -> list[str]:
        """The places whose counts differ, readable; empty if all are equal."""
        places = []
        for what in ("lines", "elements", "drawn"):
            mine, theirs = getattr(self, what), getattr(other, what)
            places += [
                f"{what} {place}: {mine[place]} or {theirs[place]}"
                for place in mine.keys() | theirs.keys()
                if mine[place] != theirs[place]
            ]
        return sorted(places)

    def uncounted(self, work: Work) -> str | None:
        """The line that ran most often, if it ran more often than the cost of the query counts."""
        lines = self.lines + self.followed
        most = max(lines, key=lines.__getitem__, default=None)
        return f"{most} ran {lines[most]}" if most and lines[most] > most_runs(work) else None

    def _call(self, runs: Runs, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        function = self._functions.get(id(code)) or self._function(code)
        if not function.counts:
            return None
        if declaration := function.declaration:
            words = declaration.words
            most = None if words is None else value_at_call(words, frame)
            bound = value_at_call(declaration.bound, frame)
            self._open.append(Limits(no_runs(), bound, self.drawn["words"], most))
        # This counter is right for all lines of the frame: whenever the frame runs a line, the
        # calls that it made have ended.
        lines = (self._open[-1].runs if self._open else runs)[function.place]

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                lines[frame.f_lineno] += 1
            elif event == "return" and declaration:
                self._close(code.co_qualname, *self._open.pop())
            elif event == "return" and not self._open:
                values = [*frame.f_locals.values(), argument]
                self.elements[(*function.place, 0)] += sum(map(elements, values))
            return step

        return step

    def _function(self, code: CodeType) -> Function:
        place = code.co_filename.removeprefix(MECHANISMS), code.co_qualname
        counts = code.co_filename.startswith(self.root)
        function = Function(code, counts, declaration_of(code), place)
        self._functions[id(code)] = function
        return function

    def _close(self, name: str, runs: Runs, bound: int, drawn: int, words: int | None) -> None:
        lines = by_place(runs)
        self.declared.add(name)
        self.followed.update(lines)
        if lines and max(lines.values()) > bound:
            worst = max(lines, key=lines.__getitem__)
            self.beyond.append(f"{name}: {worst} ran {lines[worst]}, not {bound}")
        if words is not None:
            spent, self.drawn["words"] = self.drawn["words"] - drawn, drawn
            if spent > words:
                self.beyond.append(f"{name}: {spent} words, not {words}")


def declaration_of(code: CodeType) -> Following | None:
    return FOLLOWING.get(code) or (AFTER if code.co_filename.endswith(AFTERWARDS) else None)


def value_at_call(bound: Callable[..., int], frame: FrameType) -> int:
    """A bound for the arguments of the call that begins in this frame."""
    return bound(**{name: frame.f_locals[name] for name in inspect.signature(bound).parameters})


def no_runs() -> Runs:
    return defaultdict(lambda: defaultdict(int))


def by_place(runs: Runs) -> Counter[Place]:
    return Counter(
        {(*place, line): times for place, lines in runs.items() for line, times in lines.items()}
    )


def elements(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    # The fields of a named tuple are not counted, because the function that fills them counts them.
    if type(value) in (list, tuple):
        return sum(map(elements, value))
    return 0
