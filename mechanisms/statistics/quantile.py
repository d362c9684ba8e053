"""Quantiles and the median of a numeric attribute: the value of rank max(1, ⌈p·n⌉) of n rows.

p is an exact decimal, because in doubles ⌈0.07·100⌉ would be 8. The quantile of an empty table is
the upper bound. The ranks for the exponential mechanism are whole numbers as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.quantile_sensitivity import (
    AddRemoveBound,
    ReplaceBound,
    SortedNumbers,
    rank,
)
from mechanisms.statistics.statistic import Measurement, Part
from mechanisms.statistics.tables import bounds, number_grid, numeric, replaces

#: The most decimal places of a quantile p, so that p is a fraction of small numbers.
PLACES = 6
#: The number of cells of the public grid from which the exponential mechanism selects. If the
#: bounds are whole numbers at most 2²⁰ apart, every whole number is a cell instead.
CELLS = 1 << 16
MOST_WHOLE = 1 << 20
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Quantile(Part):
    """A quantile, whose global sensitivity is the width of the public bounds.

    Its local sensitivity at distance s is the widest run of s + 1 gaps of numbers around its rank.
    """

    name = "quantile"
    title = "Quantile"
    description = "The smallest number that a given share of the rows do not exceed."
    source = "Nissim, Raskhodnikova, Smith 2007, section 3.1; Smith 2011"

    attribute: str
    quantile: Fraction
    what = "quantile"

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1:
            raise ValueError("a quantile lies between 0 and 1")

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        exponent, low, high = number_grid(dataset, self.attribute, epsilon_nano)
        return Plan(exponent, high - low)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        numbers, dataset = context.table.ordered[self.attribute], context.dataset
        low, high = bounds(dataset, self.attribute, plan.exponent)
        ordered = SortedNumbers(numbers, plan.exponent, low, high)
        place = rank(self.quantile.numerator, self.quantile.denominator, len(numbers))
        kind = ReplaceBound if replaces(dataset) else AddRemoveBound
        return Measurement(
            int(ordered.window(place, place + 1)[0]),
            local=kind(ordered, self.quantile, high - low),
        )

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The released value, moved inside the public bounds."""
        (value,) = released
        attribute = numeric(dataset, self.attribute)
        return min(max(value, Fraction(attribute.lower)), Fraction(attribute.upper))

    def cells(self, dataset: Dataset) -> NDArray[np.float64]:
        """Return the public candidates lower + i·(upper − lower) / G for i = 0 … G, ascending.

        The first and the last are exactly the bounds.
        """
        attribute = numeric(dataset, self.attribute)
        lower, upper = attribute.lower, attribute.upper
        whole = lower.is_integer() and upper.is_integer() and upper - lower <= MOST_WHOLE
        count = int(upper - lower) if whole else CELLS
        grid = lower + np.arange(count + 1) * ((upper - lower) / count)
        grid[-1] = upper
        # If the bounds are so close that there are fewer doubles than cells, rounding keeps the
        # order.
        return np.maximum.accumulate(np.minimum(grid, upper))

    def rank_sensitivity(self, dataset: Dataset) -> int:
        """The most that one change moves a score of ``rank_scores``."""
        share, whole = self.quantile.numerator, self.quantile.denominator
        return whole if replaces(dataset) else max(share, whole - share)

    def rank_scores(self, context: QueryContext, cells: NDArray[np.float64]) -> Integers:
        """Return the private score −max(0, b·L − a·n, a·n − b·R) of each cell, for p = a/b, n rows.

        L numbers lie below the cell and R in it or below, so the score is 0 where p·n is a rank of
        the cell. A number that occurs several times covers its whole cell.
        """
        numbers = context.table.ordered[self.attribute]
        share, whole = self.quantile.numerator, self.quantile.denominator
        goal = share * len(numbers)
        scores = np.empty(len(cells), dtype=np.int64)

        def part(start: int) -> None:
            block = slice(start, min(start + _BLOCK, len(cells)))
            # One more cell is searched, because R of a cell is L of the next cell.
            below = np.searchsorted(numbers, cells[start : start + _BLOCK + 1], side="left")
            if block.stop == len(cells):
                below = np.append(below, len(numbers))
            ranks = whole * below.astype(np.int64) - goal
            scores[block] = -np.maximum(np.maximum(ranks[:-1], -ranks[1:]), 0)

        context.executor.map(part, range(0, len(cells), _BLOCK))
        return scores


@dataclass(frozen=True)
class Median(Quantile):
    """The quantile of one half."""

    name = "median"
    title = "Median"
    description = "The smallest number that half of the rows do not exceed."

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
