"""The protocol of a utility: scores of candidates on an integer grid, with a sensitivity function.

A new utility is one file in this package and one line in ``mechanisms.utilities.UTILITIES``. The
shared contract tests in ``tests/evidence/certification`` then cover it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, runtime_checkable

from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.facts import ByRelation, JointByRelation
from mechanisms.model.joint_influence import Independent, JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity, SensitivityFunction
from mechanisms.model.work import Work
from mechanisms.utilities.covering import ConstantSensitivity


@dataclass(frozen=True)
class Grid:
    """The public integer grid of a utility: one unit of it is 2^``bits`` steps."""

    bits: int
    #: The global sensitivity Δ in grid steps: the most that one change of the records moves any
    #: candidate's utility, in any dataset.
    cap: int
    #: The public distance T, in changes of the records, from which on the sensitivity function δ
    #: equals ``cap`` for every candidate.
    horizon: int
    #: A bound on the absolute value of the utility in grid steps, in any dataset.
    largest: int

    def coarser(self, bits: int) -> Grid:
        """The same bounds on a grid of fewer bits; rounding up twice equals rounding up once."""
        shift = self.bits - bits
        if shift < 0:
            raise ValueError("a grid is only made coarser: its bounds were rounded up")
        return replace(
            self,
            bits=bits,
            cap=max(1, -(-self.cap >> shift)),
            largest=-(-self.largest >> shift),
        )


def finest_bits(units: int, most: int, refusal: str) -> int:
    """The largest g ≤ ``most`` with units · 2^g < 2⁶².

    ``units`` is a public bound on utilities and on all sums of δ. Raises: UnsupportedQuery with
    the message ``refusal`` when no g ≥ 1 fits.
    """
    bits = min(most, LIMIT.bit_length() - 1 - units.bit_length())
    if bits < 1:
        raise UnsupportedQuery(refusal)
    return bits


@dataclass(frozen=True)
class Measurement:
    """Private: utilities in grid steps, shape (n,) int64, and their sensitivity function."""

    utilities: Integers
    delta: SensitivityFunction

    @classmethod
    def constant(cls, utilities: Integers, grid: Grid) -> Self:
        """With δ ≡ Δ: for the global sensitivity, and for utilities whose δ never varies."""
        return cls(utilities, ConstantSensitivity(grid.cap, utilities.size, grid.horizon))


class Objective(Protocol):
    """One ranking of candidates. Everything except ``measure`` depends on public facts alone."""

    @property
    def candidates(self) -> str:
        """The kind of candidates that it ranks, e.g. "nodes"."""
        ...

    @property
    def relations(self) -> frozenset[NeighbouringRelation]:
        """The relations under which its δ is admissible."""
        ...

    @property
    def direction(self) -> Literal[1, -1]:
        """The public direction of the shift: +1 where δ grows with u, −1 where it falls."""
        ...

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        """The finest grid for sums in 64 bits. Raises: UnsupportedQuery if there is none."""
        ...

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        """Private: utilities and δ of all candidates on ``grid``, a result of method ``grid``.

        ``sensitivity`` chooses between several forms of δ.
        """
        ...

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        """The public work of ``measure`` and of the scores of all candidates."""
        ...

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        """How far one change moves all scores of 2^−score_bits together, for this ``grid``."""
        ...


class Utility(Objective, Protocol):
    """An objective with a name and a description of its own."""

    name: str
    title: str
    description: str
    source: str

    @property
    def sensitivity_facts(self) -> ByRelation:
        """Δ, δ and T in words, for each of ``relations``."""
        ...

    @property
    def joint_facts(self) -> JointByRelation:
        """The joint influence in words, for each of ``relations`` and every sensitivity."""
        ...


@dataclass(frozen=True)
class Trend:
    """How u and δ vary with the size of a candidate (degree of a node, records of a value).

    These are public constants, from which the direction of the shift of a weighted sum follows.

    ``value`` and ``sensitivity`` are signs; 0 means that δ is constant. ``growth`` is the power of
    the size to which both grow at most. The direction of the utility is the product of the signs.
    """

    value: Literal[1, -1]
    sensitivity: Literal[1, 0, -1]
    growth: int = 0


@runtime_checkable
class TrendingUtility(Protocol):
    """A utility with a known trend. Any other counts as ``Trend(1, direction)``."""

    trend: Trend


@dataclass(frozen=True)
class InnerChange:
    """How far one added edge moves the utilities of the nodes that both its ends are joined to.

    ``fall`` and ``rise`` are bounds in grid steps; a removed edge moves them the other way. All
    other nodes, except the two ends, keep their utility.
    """

    fall: int
    rise: int


@runtime_checkable
class EdgeUtility(Protocol):
    """A utility of nodes with a known change of inner nodes."""

    def inner_change(self, dataset: Dataset, grid: Grid) -> InnerChange:
        """The change in steps of ``grid``."""
        ...

    def depends_on_degree(self, sensitivity: Sensitivity) -> bool:
        """True if δ of a node follows from its degree alone, which an inner node keeps."""
        ...


@runtime_checkable
class OneWayUtility(Protocol):
    """A utility that an added record or edge never raises, or never lowers."""

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        """The sign of all changes of a score when a record is added; 0 if both signs occur.

        Beyond the global sensitivity it may differ from 0 only where δ is constant.
        """
        ...


class ClippedScores(Protocol):
    """Dampened scores D of nodes that move together by less where they are clipped."""

    def influence(self, dataset: Dataset, clip: int, score_bits: int) -> JointInfluence | None:
        """The joint influence of max(D, ``clip``), D in units; None if most degrees are ties."""
        ...


@runtime_checkable
class ClippedObjective(Protocol):
    """An objective that may have clipped scores."""

    def clipped(self, dataset: Dataset, candidates: Candidates, grid: Grid) -> ClippedScores | None:
        """Its clipped scores, or None where clipping is not known to help."""
        ...


def both_ways(dataset: Dataset, candidates: Candidates, score_bits: int) -> JointInfluence:
    """The joint influence that always holds: every score moves by one unit in any direction."""
    return Independent(candidates.count(dataset), 1 << score_bits)
