"""What a utility is: a score of candidates on an integer grid, with its sensitivity function.

A new utility is one file in this package and one line in ``mechanisms.utilities.UTILITIES``; the
shared contract tests in ``tests/evidence/certification`` cover it from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity, SensitivityFunction


@dataclass(frozen=True)
class Grid:
    """The public integer grid of a utility: one unit of it is 2^``bits`` steps."""

    bits: int
    #: Δ in steps: the most one change moves any candidate's utility, anywhere in the universe.
    cap: int
    #: T: from this distance on δ equals the cap for every candidate.
    horizon: int
    #: A bound on |u| in steps, over the whole universe.
    largest: int

    def coarser(self, bits: int) -> Grid:
        """The same bounds on a grid of fewer bits; rounding up twice is rounding up once."""
        shift = self.bits - bits
        if shift < 0:
            raise ValueError("a grid is only made coarser: its bounds were rounded up")
        return replace(
            self,
            bits=bits,
            cap=max(1, -(-self.cap >> shift)),
            largest=-(-self.largest >> shift),
        )


@dataclass(frozen=True)
class Measured:
    """Private: utilities in grid steps, shape (n,) int64, and their sensitivity function."""

    utilities: Integers
    delta: SensitivityFunction


class Utility(Protocol):
    name: str
    title: str
    description: str
    source: str
    #: The kind of candidates it scores, e.g. "nodes".
    candidates: str
    relations: frozenset[NeighbouringRelation]
    #: The public direction of the shift: +1 where δ grows with u, −1 where it falls.
    direction: Literal[1, -1]

    @property
    def sensitivity_facts(self) -> ByRelation:
        """Δ, δ and T in words, for each of ``relations``."""
        ...

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        """The finest grid on which all sums stay in 64 bits; UnsupportedQuery when none does."""
        ...

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measured:
        """Utilities and δ of all candidates, from prepared columns; δ in the form that suits."""
        ...
