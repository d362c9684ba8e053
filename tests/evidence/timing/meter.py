"""Counts what a computation does: lines of ``mechanisms``, array elements, words and parts.

Kernels must run as plain Python, so a process that uses this starts with NUMBA_DISABLE_JIT=1. The
counts of library calls are unknown: a rule of tests/architecture forbids those that follow values.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import mechanisms
from mechanisms.model.executor import Executor
from mechanisms.model.following import FOLLOWING
from mechanisms.model.randomness import Words

MECHANISMS = str(Path(mechanisms.__file__).parent)
#: Files that read released numbers alone, so their work may depend on them.
AFTERWARDS = ("/model/number.py", "/statistics/mean_interval.py")
Place = tuple[str, str, int]


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
    """Runs parts at once and counts them."""

    workers = 2

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def map(self, kernel: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
        listed = list(parts)
        self._counts["parts"] += len(listed)
        return super().map(kernel, listed)


class Limits(NamedTuple):
    """The lines of a declared function that runs, and its public bounds."""

    lines: Counter[Place]
    bound: int
    #: Words drawn before it, and the most that it may draw, if their number is declared too.
    drawn: int
    words: int | None


@dataclass
class Meter:
    """The counts of one run; declared functions count apart and only up to their bound."""

    #: Files below this path are counted.
    root: str = MECHANISMS
    #: How often each line ran, and how many array elements the calls of each function left.
    lines: Counter[Place] = field(default_factory=Counter)
    elements: Counter[Place] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    #: Declared functions that ran, and those that ran more than their bound.
    declared: set[str] = field(default_factory=set)
    beyond: list[str] = field(default_factory=list)
    _open: list[Limits] = field(default_factory=list)

    def run(self, computation: Callable[[CountedWords, CountedParts], object], seed: int) -> None:
        words, executor = CountedWords(seed, self.drawn), CountedParts(self.drawn)
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            computation(words, executor)
        finally:
            sys.settrace(before)

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

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        if not code.co_filename.startswith(self.root) or code.co_filename.endswith(AFTERWARDS):
            return None
        if code in FOLLOWING:
            bound, words = FOLLOWING[code].bound, FOLLOWING[code].words
            most = None if words is None else value_at_call(words, frame)
            limits = Limits(Counter(), value_at_call(bound, frame), self.drawn["words"], most)
            self._open.append(limits)
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event == "line":
            lines = self._open[-1].lines if self._open else self.lines
            lines[place(code, frame.f_lineno)] += 1
        elif event == "return" and code in FOLLOWING:
            self._close(code.co_qualname, *self._open.pop())
        elif event == "return" and not self._open:
            values = [*frame.f_locals.values(), argument]
            self.elements[place(code, 0)] += sum(map(elements, values))
        return self._step

    def _close(
        self, name: str, lines: Counter[Place], bound: int, drawn: int, words: int | None
    ) -> None:
        self.declared.add(name)
        if lines and max(lines.values()) > bound:
            worst = max(lines, key=lines.__getitem__)
            self.beyond.append(f"{name}: {worst} ran {lines[worst]}, not {bound}")
        if words is not None:
            spent, self.drawn["words"] = self.drawn["words"] - drawn, drawn
            if spent > words:
                self.beyond.append(f"{name}: {spent} words, not {words}")


def value_at_call(bound: Callable[..., int], frame: FrameType) -> int:
    """A bound for the arguments of the call that begins in this frame."""
    return bound(**{name: frame.f_locals[name] for name in inspect.signature(bound).parameters})


def place(code: CodeType, line: int) -> Place:
    return code.co_filename.removeprefix(MECHANISMS), code.co_qualname, line


def elements(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    # Not the fields of a named tuple: the function that fills them counts them.
    if type(value) in (list, tuple):
        return sum(map(elements, value))
    return 0
