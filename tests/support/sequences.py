"""δ written out as lists, and the formulas of dampening in Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.model.sensitivity import Integers, SensitivityFunction
from mechanisms.utilities.covering import Stepwise


@dataclass(frozen=True)
class Sequences(Stepwise):
    """One row δ(0), …, δ(T − 1) per candidate; from T on δ is the cap for every candidate."""

    rows: Sequence[Sequence[int]]
    cap: int

    @property
    def horizon(self) -> int:  # type: ignore[override]
        return len(self.rows[0])

    def at(self, t: int, candidates: Integers) -> Integers:
        return np.array([self.value(t, int(r)) for r in candidates], dtype=np.int64)

    def largest(self, t: int) -> int:
        return max(self.value(t, r) for r in range(len(self.rows)))

    def shortfall(self) -> Integers:
        return np.array([sum(self.cap - step for step in row) for row in self.rows], np.int64)

    def value(self, t: int, r: int) -> int:
        return self.rows[r][t] if t < self.horizon else self.cap


def ratio(numerator: int, denominator: int, bits: int) -> int:
    return (numerator << bits) // denominator


def dampened(utility: int, row: Sequence[int], cap: int, bits: int) -> int:
    """The loop of Definition 3.6 with one rule for both signs, then the grid."""
    size, below, i = abs(utility), 0, 0
    if size == 0:
        return 0
    while i < len(row) and below + row[i] < size:
        below += row[i]
        i += 1
    width = row[i] if i < len(row) else cap
    signed = i * width + size - below
    return ratio(signed if utility > 0 else -signed, width, bits)


def flattened(
    utilities: Sequence[int], rows: Sequence[Sequence[int]], cap: int, bits: int
) -> list[int]:
    largest = [max(column) for column in zip(*rows, strict=True)]
    return [dampened(utility, largest, cap, bits) for utility in utilities]


def shifted(utility: int, row: Sequence[int], cap: int, bits: int, direction: int) -> int:
    return ratio(utility - direction * sum(cap - step for step in row), cap, bits)


def passed_one_by_one(delta: SensitivityFunction, goals: Integers) -> list[tuple[int, int, int]]:
    """``delta.passed`` by definition: a loop over t for every goal, in unbounded integers."""
    rows = []
    for candidate, goal in enumerate(goals.tolist()):
        one, t = np.array([candidate]), 0
        while t < delta.horizon and goal > (step := int(delta.at(t, one)[0])):
            t, goal = t + 1, goal - step
        rows.append((t, goal, delta.cap if t == delta.horizon else int(delta.at(t, one)[0])))
    return rows
