"""Synthetic utilities on small neighbour graphs, with the smallest admissible δ.

A universe is a connected graph whose nodes are datasets; utilities are any whole numbers, and
their δ is the local sensitivity at distance t, worked out by definition (floor of one step). This δ
is the smallest one, so that an objective which is private with it is private with every other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal

import numpy as np

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.utilities.covering import ClosedForm
from mechanisms.utilities.utility import Grid, Measurement, both_ways
from tests.evidence.certification.checks import Array
from tests.evidence.certification.family import Universe

Edge = tuple[int, int]


@dataclass(frozen=True)
class Points:
    """A number of abstract candidates."""

    size: int
    kind: str = "points"

    def count(self, dataset: Dataset) -> int:  # noqa: ARG002 - the same for every dataset
        return self.size

    def label(self, dataset: Dataset, index: int) -> int | str:  # noqa: ARG002
        return index


@dataclass(frozen=True)
class Number:
    """One dataset of the universe, given by its number."""

    x: int


@dataclass(frozen=True)
class TabulatedDelta(ClosedForm):
    """δ(0), …, δ(T − 1), shape (T, n); the cap from T on."""

    rows: Array
    cap: int

    @property
    def horizon(self) -> int:  # type: ignore[override]
        return len(self.rows)

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.rows.shape[1]

    def before(self, t: Integers) -> Integers:
        sums = np.concatenate([np.zeros_like(self.rows[:1]), np.cumsum(self.rows, axis=0)])
        listed = np.minimum(t, self.horizon)
        return sums[listed, np.arange(self.count)] + (t - listed) * self.cap

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        row = self.rows[np.minimum(t, self.horizon - 1), candidates]
        return np.where(np.less(t, self.horizon), row, self.cap)

    def widest(self, t: Integers) -> Integers:
        row = self.rows.max(axis=1)[np.minimum(t, self.horizon - 1)]
        return np.where(t < self.horizon, row, self.cap)


@dataclass(frozen=True, eq=False)
class Synthetic:
    """``values`` (datasets, candidates) on the universe with these edges. A ``Utility``."""

    values: Array
    edges: tuple[Edge, ...]
    name: str = "synthetic"
    #: What ``exclusive`` returns: the names of a group of utilities and of one part of it. One
    #: change of the records moves utilities of only one part of a group.
    part: tuple[str, str] | None = None
    title: str = "Synthetic"
    description: str = "A table of whole numbers."
    source: str = "None."
    candidates: str = "points"
    relations: frozenset[NeighbouringRelation] = field(
        default=frozenset({NeighbouringRelation.EDGE})
    )
    direction: Literal[1, -1] = 1

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:  # noqa: ARG002
        return self.part

    @cached_property
    def sensitivities(self) -> Array:
        """max(LS(x, t, r), 1), shape (datasets, t = 0 … datasets − 1, candidates)."""
        return local_sensitivities(self.values, self.edges)

    def grid(
        self,
        dataset: Dataset,  # noqa: ARG002 - the universe is the utility's own
        candidates: Candidates,  # noqa: ARG002
        sensitivity: Sensitivity,  # noqa: ARG002
    ) -> Grid:
        return Grid(
            bits=0,
            cap=int(self.sensitivities.max()),
            horizon=self.sensitivities.shape[1],
            largest=int(np.abs(self.values).max()),
        )

    def measure(
        self,
        records: Any,
        dataset: Dataset,  # noqa: ARG002
        candidates: Candidates,  # noqa: ARG002
        sensitivity: Sensitivity,  # noqa: ARG002
        grid: Grid,
    ) -> Measurement:
        delta = TabulatedDelta(self.sensitivities[records.x], grid.cap)
        return Measurement(self.values[records.x].copy(), delta)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - it holds for all of them
        grid: Grid,  # noqa: ARG002
        score_bits: int,
    ) -> JointInfluence:
        return both_ways(dataset, candidates, score_bits)


def local_sensitivities(values: Array, edges: Iterable[Edge]) -> Array:
    """LS by definition, at least 1: the largest change of one step within distance t of x."""
    size = len(values)
    near = np.zeros((size, size), dtype=bool)
    for x, y in edges:
        near[x, y] = near[y, x] = True
    at_zero = np.ones_like(values)
    for x in range(size):
        for y in np.flatnonzero(near[x]):
            at_zero[x] = np.maximum(at_zero[x], np.abs(values[x] - values[y]))
    rows = [at_zero]
    for _ in range(size - 1):
        wider = rows[-1].copy()
        for x in range(size):
            for y in np.flatnonzero(near[x]):
                wider[x] = np.maximum(wider[x], rows[-1][y])
        rows.append(wider)
    return np.stack(rows, axis=1)


def universe(size: int, edges: Iterable[Edge], candidates: int) -> Universe:
    return Universe(
        dataset=Dataset("synthetic", NeighbouringRelation.EDGE, GraphDomain(1, 0)),
        candidates=Points(candidates),
        members=list(range(size)),
        records=[Number(x) for x in range(size)],  # type: ignore[misc]
        pairs=np.array(sorted(edges), dtype=np.int64).reshape(-1, 2),
    )


def path(size: int) -> tuple[Edge, ...]:
    return tuple((x, x + 1) for x in range(size - 1))


def cycle(size: int) -> tuple[Edge, ...]:
    return (*path(size), (0, size - 1))


def connected(size: int, rng: Random) -> tuple[Edge, ...]:
    """A random tree and some more edges."""
    edges = {(rng.randrange(x), x) for x in range(1, size)}
    edges |= {(x, y) for y in range(size) for x in range(y) if rng.random() < 0.2}
    return tuple(sorted(edges))


def random_values(size: int, candidates: int, spread: int, jump: float, rng: Random) -> Array:
    """Values of a random walk over the datasets, with rare large jumps: many ties, some cliffs."""
    rows = [[rng.randint(0, spread) for _ in range(candidates)]]
    for _ in range(size - 1):
        rows.append(
            [
                rng.randint(0, spread) if rng.random() < jump else u + rng.choice((-1, 0, 0, 1))
                for u in rows[-1]
            ]
        )
    return np.array(rows, dtype=np.int64)
