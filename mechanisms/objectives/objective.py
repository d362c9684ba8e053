"""What an objective is: the language of utilities, for one order of merit.

A public grid, then private utilities with their δ on that grid. So a utility is an objective by
itself, an objective may be a member of another, and whatever selects (top-k, trees, distance
contexts) takes any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol, Self, runtime_checkable

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.utility import Grid, Measured


class Objective(Protocol):
    """One order of merit. Everything but ``measure`` is a matter of public facts."""

    @property
    def candidates(self) -> str:
        """The kind of candidates it ranks."""
        ...

    @property
    def relations(self) -> frozenset[NeighbouringRelation]:
        """The relations under which its δ is admissible."""
        ...

    @property
    def direction(self) -> Literal[1, -1]:
        """The public direction of the shift, fixed by the terms and never by records."""
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
        """Utilities and δ of all candidates on ``grid``, which ``grid`` of this objective made."""
        ...


@runtime_checkable
class Spread(Protocol):
    """An objective whose measuring is worth more than one worker."""

    def on(self, executor: Executor) -> Self:
        """The same objective, measured on this executor."""
        ...


@runtime_checkable
class Relative(Protocol):
    """An objective whose utilities compare candidates, so that they depend on who is left."""

    def without(self, measured: Measured, grid: Grid, place: int) -> tuple[Measured, Grid]:
        """What it says about the rest once the candidate in this place is taken; public bounds."""
        ...


@dataclass(frozen=True)
class Term:
    """A member of an objective, with its weight where the objective has weights."""

    member: Objective
    weight: Decimal | None = None
