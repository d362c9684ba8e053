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
from typing import Any

import numpy as np

import mechanisms
from mechanisms.model.executor import Executor
from mechanisms.model.following import FOLLOWING
from mechanisms.model.randomness import Words

MECHANISMS = str(Path(mechanisms.__file__).parent)
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
    _open: list[tuple[Counter[Place], int]] = field(default_factory=list)

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
        found = []
        for what in ("lines", "elements", "drawn"):
            mine, theirs = getattr(self, what), getattr(other, what)
            found += [
                f"{what} {place}: {mine[place]} or {theirs[place]}"
                for place in mine.keys() | theirs.keys()
                if mine[place] != theirs[place]
            ]
        return sorted(found)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        if not code.co_filename.startswith(self.root):
            return None
        if code in FOLLOWING:
            bound = FOLLOWING[code].bound
            names = inspect.signature(bound).parameters
            self._open.append((Counter(), bound(**{n: frame.f_locals[n] for n in names})))
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event == "line":
            lines = self._open[-1][0] if self._open else self.lines
            lines[place(code, frame.f_lineno)] += 1
        elif event == "return" and code in FOLLOWING:
            lines, bound = self._open.pop()
            self.declared.add(code.co_qualname)
            if lines and max(lines.values()) > bound:
                worst = max(lines, key=lines.__getitem__)
                self.beyond.append(f"{code.co_qualname}: {worst} ran {lines[worst]}, not {bound}")
        elif event == "return" and not self._open:
            left = [*frame.f_locals.values(), argument]
            self.elements[place(code, 0)] += sum(map(elements, left))
        return self._step


def place(code: CodeType, line: int) -> Place:
    return code.co_filename.removeprefix(MECHANISMS), code.co_qualname, line


def elements(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    # Not the fields of a named tuple: the function that fills them counts them.
    if type(value) in (list, tuple):
        return sum(map(elements, value))
    return 0
