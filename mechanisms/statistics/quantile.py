"""Quantiles and the median of a numeric attribute: the value of rank max(1, ⌈p·n⌉) of n rows.

p is an exact decimal, because in doubles ⌈0.07·100⌉ would be 8. The quantile of an empty table is
the upper bound. The ranks for the exponential mechanism are whole numbers as well.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.radix import sorted_numbers
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.predicate import Condition, condition_work, fits
from mechanisms.statistics.quantile_sensitivity import (
    AddRemoveBound,
    ConditionalReplaceBound,
    ReplaceBound,
    SortedNumbers,
    farthest,
    most_windows,
    rank,
)
from mechanisms.statistics.statistic import Measurement, Part
from mechanisms.statistics.tables import (
    BLOCK,
    blocks,
    bounds,
    most_rows,
    number_bounds,
    number_grid,
    numeric,
    replaces,
    rows_where,
)

#: The most decimal places of the share p of a quantile, so that p is a fraction of small numbers.
PLACES = 6
#: The number of cells of the public grid from which the exponential mechanism selects. If the
#: bounds are whole numbers at most 2²⁰ apart, every whole number is a cell instead.
CELLS = 1 << 16
MOST_WHOLE = 1 << 20
#: The number of cells that one parallel task of the executor searches.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Quantile(Part):
    """A quantile, whose global sensitivity is the width of the public bounds.

    Its local sensitivity at distance s is the widest run of s + 1 gaps of numbers around its rank.
    """

    name = "quantile"
    title = "Quantile"
    description = (
        "The smallest number that a given share of the rows do not exceed: of those that meet a "
        "condition, or of all."
    )
    source = "Nissim, Raskhodnikova, Smith 2007, section 3.1; Smith 2011"

    attribute: str
    quantile: Fraction
    where: Condition | None = None
    what = "quantile"

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1:
            raise ValueError("a quantile lies between 0 and 1")

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        exponent, low, high = number_grid(dataset, self.attribute, epsilon_nano)
        if self.where is not None:
            fits(self.where, dataset)
        return Plan(exponent, high - low)

    def reach(self, dataset: Dataset) -> int:
        return most_rows(dataset)

    def terms(self, dataset: Dataset, plan: Plan, beta: float | None) -> int:
        assert beta is not None, "the ladder has no bound of a quantile"
        if not replaces(dataset):
            return most_windows(plan.cap, beta)
        if self.where is not None:
            return most_windows(plan.cap, beta / 2)
        reach = min(farthest(plan.cap, beta), most_rows(dataset))
        return 2 * reach * (reach.bit_length() + 2)

    def form(self, dataset: Dataset) -> str:
        # If the query has a condition, replacing a row may change the number of rows that meet it.
        # So the smooth bound has the form for rows that are added or removed.
        return super().form(dataset) if self.where is None else "add_remove"

    def work(self, dataset: Dataset) -> Work:
        if self.where is None:
            return NOTHING
        rows = most_rows(dataset)
        return together(
            condition_work(self.where, rows, dataset),
            work("sorted rows", rows * rows.bit_length()),
        )

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        (numbers, count), dataset = self._ordered(context), context.dataset
        low, high = bounds(dataset, self.attribute, plan.exponent)
        ordered = SortedNumbers(numbers, plan.exponent, low, high, count)
        place = rank(self.quantile.numerator, self.quantile.denominator, count)
        kind: type[AddRemoveBound | ReplaceBound] = AddRemoveBound
        if replaces(dataset):
            kind = ReplaceBound if self.where is None else ConditionalReplaceBound
        return Measurement(
            int(ordered.window(place, place + 1)[0]),
            local=kind(ordered, self.quantile, high - low),
        )

    def _ordered(self, context: QueryContext) -> tuple[NDArray[np.float64], int]:
        """Return private numbers in ascending order, and how many of them, from the first, count.

        These are of the rows that meet the condition.
        """
        if self.where is None:
            ordered = context.table.ordered[self.attribute]
            return ordered, len(ordered)
        numbers, met = context.table.values[self.attribute], rows_where(self.where, context)
        met_rows = np.empty(len(numbers), np.bool_)
        for start in blocks(context.dataset):
            rows = slice(start, min(start + BLOCK, len(numbers)))
            met_rows[rows] = met(rows)
        # The number of rows that meet the condition is private. The numbers of the other rows
        # become infinite and are sorted to the end. So the work follows from the number of all
        # rows.
        ordered = sorted_numbers(np.where(met_rows, numbers, np.inf))
        return ordered, int(met_rows.sum())

    def limits(self, dataset: Dataset) -> tuple[Fraction, Fraction]:
        return number_bounds(dataset, self.attribute)

    def cell_count(self, dataset: Dataset) -> int:
        """The public number of candidates."""
        attribute = numeric(dataset, self.attribute)
        lower, upper = attribute.lower, attribute.upper
        whole = lower.is_integer() and upper.is_integer() and upper - lower <= MOST_WHOLE
        return (int(upper - lower) if whole else CELLS) + 1

    def cells(self, dataset: Dataset) -> NDArray[np.float64]:
        """Return the public candidates lower + i·(upper − lower) / G for i = 0 … G, ascending.

        The first and the last are exactly the bounds.
        """
        attribute = numeric(dataset, self.attribute)
        lower, upper = attribute.lower, attribute.upper
        count = self.cell_count(dataset) - 1
        grid = lower + np.arange(count + 1) * ((upper - lower) / count)
        grid[-1] = upper
        # The public bounds of the attribute may be so close that fewer doubles than cells lie
        # between them. Then some cells are equal. They must still ascend and stay inside the
        # bounds.
        return np.maximum.accumulate(np.minimum(grid, upper))

    def rank_sensitivity(self, dataset: Dataset) -> int:
        """The most that one change moves a score of ``rank_scores``."""
        share, whole = self.quantile.numerator, self.quantile.denominator
        return whole if replaces(dataset) else max(share, whole - share)

    def rank_scores(self, context: QueryContext, cells: NDArray[np.float64]) -> Integers:
        """Return the private score −max(0, b·L − a·n, a·n − b·R) of each cell, for p = a/b, n rows.

        L numbers lie below the cell and R in it or below, so the score is 0 where p·n is a rank of
        the cell. A number that occurs several times covers its whole cell. Only rows that meet the
        condition count: one replacement adds or removes one of them, or replaces it.
        """
        share, whole = self.quantile.numerator, self.quantile.denominator
        below = self._below(context, cells)
        # L counts the values below a cell, and R those in the cell or below it. R of a cell is L of
        # the next one, so a single array holds both.
        ranks = whole * below - share * int(below[-1])
        scores: Integers = -np.maximum(np.maximum(ranks[:-1], -ranks[1:]), 0)
        return scores

    def _below(self, context: QueryContext, cells: NDArray[np.float64]) -> Integers:
        """Return how many numbers lie below each cell, and last how many there are; private."""
        below = np.empty(len(cells) + 1, dtype=np.int64)
        if self.where is not None:
            below[0], below[1:] = 0, np.cumsum(self._in_cells(context, cells))
            return below
        numbers = context.table.ordered[self.attribute]

        def part(start: int) -> None:
            stop = min(start + _BLOCK, len(cells))
            below[start:stop] = np.searchsorted(numbers, cells[start:stop], side="left")

        context.executor.map(part, range(0, len(cells), _BLOCK))
        below[-1] = len(numbers)
        return below

    def _in_cells(self, context: QueryContext, cells: NDArray[np.float64]) -> Integers:
        """Return how many rows that meet the condition have their number in each cell; private.

        Each row is searched and counted, in one more cell if it does not meet the condition. So
        the work follows from the numbers of rows and cells.
        """
        numbers, met = context.table.values[self.attribute], rows_where(self.where, context)

        def part(start: int) -> Integers:
            rows = slice(start, min(start + BLOCK, len(numbers)))
            places = np.searchsorted(cells, numbers[rows], side="right") - 1
            places = np.where(met(rows), places, len(cells))
            return np.bincount(places, minlength=len(cells) + 1).astype(np.int64)

        counts = np.zeros(len(cells) + 1, np.int64)
        for block in context.executor.map(part, blocks(context.dataset)):
            counts += block
        return counts[:-1]


@dataclass(frozen=True)
class Median(Quantile):
    """The quantile of one half."""

    name = "median"
    title = "Median"
    description = (
        "The smallest number that half of the rows do not exceed: of those that meet a condition, "
        "or of all."
    )

    quantile: Fraction = Fraction(1, 2)
    what = "median"


def exact_share(quantile: float) -> Fraction:
    """Return the quantile p as the exact decimal number that its text shows.

    Raises: ValueError beyond ``PLACES`` places or outside [0, 1].
    """
    share = Fraction(Decimal(repr(float(quantile))))
    if not 0 <= share <= 1:
        raise ValueError("a quantile lies between 0 and 1")
    if 10**PLACES % share.denominator:
        raise ValueError(f"a quantile has at most {PLACES} decimal places")
    return share
