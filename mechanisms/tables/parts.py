"""What a table measures: whole numbers per cell, each a sum over the rows of the cell.

A row adds one whole number, within public bounds, to one cell. So adding or removing a row moves
one number of the part by at most ``cap``. Replacing a row takes at most ``cap`` from one cell and
adds at most ``cap`` to another or to the same. Together that is 2·``cap`` in the L1 norm for every
division into cells, with a condition or without.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting.rho import RhoBound
from mechanisms.kernels.cells import Measure
from mechanisms.kernels.steps import floored, floored_squares
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import TableRecords
from mechanisms.statistics.grid import Plan, real_exponent
from mechanisms.statistics.tables import numeric, replaces
from mechanisms.tables.grouping import Edges
from mechanisms.tables.noise import Noise

#: The public bound on rows times the largest value of one row stays below this, so the sums in the
#: cells of a table and their noise fit 64 bits.
_LARGEST_SUM = 1 << 61


@dataclass(frozen=True)
class Part(ABC):
    """One number per cell; equal parts of several aggregates are measured once."""

    @property
    @abstractmethod
    def what(self) -> str:
        """The name of the part in prices and answers."""

    @abstractmethod
    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        """The public grid for at most ``rows`` rows and this share of the loss; its cap ≥ 1.

        Raises: UnsupportedQuery where the dataset has no such number.
        """

    @abstractmethod
    def change(self, dataset: Dataset, grid: Plan, cells: int) -> Fraction:
        """The most that ``cells`` cells move in the L1 norm for each changed record, in steps.

        A person with c records moves them by at most c times this number.
        """

    @abstractmethod
    def rho_bound(self, dataset: Dataset, grid: Plan, cells: int, noise: Noise) -> RhoBound:
        """The ρ of ``noise`` on ``cells`` cells."""

    def moves(self, dataset: Dataset, grid: Plan) -> Sequence[Sequence[int]]:
        """The ways in which one change of the records moves numbers, which Gaussian noise covers.

        Each is the list of the most by which single numbers move in that way, in grid steps.
        Raises: UnsupportedQuery if the part has no Gaussian noise.
        """
        raise UnsupportedQuery(
            f"Gaussian noise is not offered for {self.what}", supported={"amount": ["epsilon"]}
        )

    @property
    def width(self) -> int:
        """How many numbers the part has in each cell."""
        return 1

    def is_never_negative(self, dataset: Dataset) -> bool:
        """True if the public bounds make every exact number of the part at least 0."""
        return True


class RowSum(Part):
    """A sum over the rows of a cell, so the numbers of a margin are sums of those of the cells."""

    @abstractmethod
    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        """What the counting engine sums; every value of a row is within ± ``plan.cap``."""

    def change(self, dataset: Dataset, grid: Plan, cells: int) -> Fraction:
        return Fraction(_rows_changed(dataset) * grid.cap)

    def rho_bound(
        self,
        dataset: Dataset,
        grid: Plan,
        cells: int,
        noise: Noise,
    ) -> RhoBound:
        changes = _rows_changed(dataset)
        return noise.rho_bound(changes * grid.cap, self.largest(grid, changes))

    def moves(self, dataset: Dataset, grid: Plan) -> Sequence[Sequence[int]]:
        # No value of a row exceeds ``grid.cap`` in size. The changed rows, such as the two of a
        # replacement, may fall into different cells of the table. Then each cell moves by at most
        # ``grid.cap``. Or all fall into one cell, which moves by at most ``largest``. Noise must
        # cover both cases.
        changes = _rows_changed(dataset)
        return [[grid.cap] * changes, [self.largest(grid, changes)]]

    def largest(self, plan: Plan, changes: int) -> int:
        """The most that one change of the records moves one number of the part.

        ``changes``: how many rows it takes from cells or adds to them. Both may move the same sum,
        in one direction: a replaced row takes −1 from it and adds 1.
        """
        return changes * plan.cap


class Rows(RowSum):
    """Numbers of rows: a row taken from a number and one added to it leave it as it is."""

    def largest(self, plan: Plan, changes: int) -> int:
        return plan.cap


@dataclass(frozen=True)
class Count(Rows):
    """The rows of a cell."""

    what = "count"

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        return Plan(0, 1)

    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        return Measure()


@dataclass(frozen=True)
class Histogram(Rows):
    """The rows of a cell by bins of a numeric attribute; a row is in one bin of one cell."""

    attribute: str
    edges: tuple[float, ...]

    @property
    def what(self) -> str:
        return f"counts by bins of {self.attribute}"

    @property
    def width(self) -> int:
        return len(self.edges) - 1

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        self._bins.labels(dataset)
        return Plan(0, 1)

    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        return Measure(axis=self._bins.axis(records, dataset))

    @property
    def _bins(self) -> Edges:
        return Edges(self.attribute, self.edges, missing=False)


@dataclass(frozen=True)
class Sum(RowSum):
    """Σ ⌊x/γ⌋ over the rows of a cell; a missing cell counts as the middle of the bounds."""

    attribute: str

    @property
    def what(self) -> str:
        return f"sum of {self.attribute}"

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        exponent, low, high = _grid(dataset, self.attribute, rows, epsilon_nano)
        return Plan(exponent, max(abs(low), abs(high), 1))

    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        numbers = records.values[self.attribute]
        return Measure(lambda rows: floored(numbers[rows], plan.exponent, 0, plan.cap))

    def is_never_negative(self, dataset: Dataset) -> bool:
        return numeric(dataset, self.attribute).lower >= 0


@dataclass(frozen=True)
class CentredSum(RowSum):
    """Σ (⌊x/γ⌋ − origin) over the rows of a cell: half the noise of a sum with one bound at 0."""

    attribute: str

    @property
    def what(self) -> str:
        return f"sum of {self.attribute} around the middle of its bounds"

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        exponent, low, high = _grid(dataset, self.attribute, rows, epsilon_nano)
        middle = (low + high) // 2
        return Plan(exponent, max(high - middle, middle - low, 1))

    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        numbers, origin = records.values[self.attribute], self.origin(dataset, plan.exponent)
        return Measure(lambda rows: floored(numbers[rows], plan.exponent, origin, plan.cap))

    def is_never_negative(self, dataset: Dataset) -> bool:
        return False

    def origin(self, dataset: Dataset, exponent: int) -> int:
        """The public number of steps that is subtracted from each number."""
        low, high = _ends(dataset, self.attribute, exponent)
        return (low + high) // 2


@dataclass(frozen=True)
class CentredSquares(RowSum):
    """Σ (⌊(x − c)²/γ⌋ − origin), c a public middle; the origin halves the noise once more."""

    attribute: str

    @property
    def what(self) -> str:
        return f"sum of squares of {self.attribute} around the middle of its bounds"

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        largest = Fraction(self._reach(dataset)) ** 2
        exponent = _coarse(real_exponent(largest, epsilon_nano), largest, rows)
        return Plan(exponent, max(-(-self._most(dataset, exponent) // 2), 1))

    def measure(self, records: TableRecords, dataset: Dataset, plan: Plan) -> Measure:
        numbers, middle = records.values[self.attribute], self.middle(dataset)
        origin = self.origin(dataset, plan.exponent)
        return Measure(
            lambda rows: floored_squares(numbers[rows], middle, plan.exponent, origin, plan.cap)
        )

    def is_never_negative(self, dataset: Dataset) -> bool:
        return False

    def middle(self, dataset: Dataset) -> float:
        attribute = numeric(dataset, self.attribute)
        return attribute.lower / 2 + attribute.upper / 2

    def origin(self, dataset: Dataset, exponent: int) -> int:
        """The public number of steps that is subtracted from each square."""
        return self._most(dataset, exponent) // 2

    def _most(self, dataset: Dataset, exponent: int) -> int:
        return int(Fraction(self._reach(dataset)) ** 2 / Fraction(2) ** exponent) + 1

    def _reach(self, dataset: Dataset) -> float:
        """The farthest that a number may be from the middle."""
        attribute, middle = numeric(dataset, self.attribute), self.middle(dataset)
        return max(attribute.upper - middle, middle - attribute.lower)


def _rows_changed(dataset: Dataset) -> int:
    """How many rows one change of a record takes from the cells or adds to them."""
    return 2 if replaces(dataset) else 1


def _grid(dataset: Dataset, name: str, rows: int, epsilon_nano: int) -> tuple[int, int, int]:
    """The exponent of the grid of an attribute's numbers, and its bounds in steps."""
    attribute = numeric(dataset, name)
    largest = max(abs(Fraction(attribute.lower)), abs(Fraction(attribute.upper)))
    exponent = _coarse(real_exponent(largest, epsilon_nano), largest, rows)
    return exponent, *_ends(dataset, name, exponent)


def _coarse(exponent: int, largest: Fraction, rows: int) -> int:
    """The least exponent from this one on at which ``rows`` numbers of any size fit 64 bits."""
    while 2 * (largest / Fraction(2) ** exponent + 1) * max(rows, 1) > _LARGEST_SUM:
        exponent += 1
    return exponent


def _ends(dataset: Dataset, name: str, exponent: int) -> tuple[int, int]:
    attribute = numeric(dataset, name)
    low, high = np.floor(np.ldexp([attribute.lower, attribute.upper], -exponent)).tolist()
    return int(low), int(high)
