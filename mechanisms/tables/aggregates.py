"""Aggregates: the numbers of each cell, worked out from released parts and public facts alone."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import Dataset
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.tables import numeric
from mechanisms.tables.intervals import Box, quotients, squares
from mechanisms.tables.noise import Noise
from mechanisms.tables.parts import CentredSquares, CentredSum, Count, Histogram, Part, Sum
from mechanisms.tables.quantiles import quantile_boxes, quantile_values

Numbers = NDArray[Any]
#: A bound on the rounding error of a squared number in doubles, as a share of the largest square.
_SQUARE_ERROR = 2.0**-50


class Summands(NamedTuple):
    """How many of all cells the numbers of a margin sum, because others are suppressed.

    ``by_own_noise``: True if the noise of these very numbers had a part in choosing the cells.
    """

    summed: NDArray[np.int64]
    by_own_noise: bool

    def half_widths(self, noise: Noise, terms: int, miss: Fraction) -> Numbers:
        """A bound on each sum of noises that it exceeds at most with chance ``miss``.

        Args:
            terms: the number of all cells of one number.

        The choice by other noise leaves the law of a sum as it is; its terms are rounded up to a
        power of 2, so that few laws are worked out. After a choice by own noise a sum is within the
        widths of all its cells together, which hold at the same time for every choice.
        """
        if self.by_own_noise:
            all_cells = noise.half_width(terms, miss / 2)
            each = noise.half_width(1, miss / 2 / terms)
            return np.where(self.summed == terms, all_cells, self.summed * each)
        widths = np.full(self.summed.shape, noise.half_width(terms, miss))
        size = 1 << (terms - 1).bit_length() >> 1
        while size:
            widths[self.summed <= size] = noise.half_width(size, miss)
            size >>= 1
        return widths


class Noisy(NamedTuple):
    """One released part over a table or a margin: public from here on.

    ``values`` is in steps, of the shape of the table and one more axis for a histogram. Each number
    has the noise of at most ``terms`` draws, and of those of its ``summands`` where some cells are
    left out. ``rows`` is the public bound on the rows of a cell.
    """

    values: Numbers
    plan: Plan
    noise: Noise
    terms: int
    rows: int
    summands: Summands | None = None

    def box(self, miss: Fraction) -> Box:
        """Intervals in steps, each of which misses the exact number with chance ``miss``."""
        if self.summands is None:
            width: Numbers | int = self.noise.half_width(self.terms, miss)
        else:
            width = self.summands.half_widths(self.noise, self.terms, miss)
        return Box(self.values - width, self.values + width)

    @property
    def step(self) -> float:
        return float(self.plan.step)


Released = Mapping[Part, Noisy]


@dataclass(frozen=True)
class Aggregate(ABC):
    """One aggregate of a table; it may give several columns."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in answers."""

    @abstractmethod
    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        """What is measured for it. Raises: UnsupportedQuery if the dataset has no such number."""

    @abstractmethod
    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        """The values of each column, in the shape of the table."""

    @abstractmethod
    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        """The intervals of each column, each missing with a chance of at most ``miss``."""


@dataclass(frozen=True)
class CountOf(Aggregate):
    """How many rows a cell has."""

    columns = ("count",)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        return (Count(),)

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        return [released[Count()].values]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        return [released[Count()].box(miss)]


@dataclass(frozen=True)
class SumOf(Aggregate):
    """The sum of a numeric attribute; a missing cell counts as the middle of its bounds."""

    attribute: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"sum({self.attribute})",)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        numeric(dataset, self.attribute)
        return (Sum(self.attribute),)

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        noisy = released[Sum(self.attribute)]
        return [noisy.values * noisy.step]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        noisy = released[Sum(self.attribute)]
        box = noisy.box(miss)
        # Each number was rounded down by less than a grid step, so the upper end adds one step per
        # row.
        return [Box(box.low * noisy.step, (box.high + noisy.rows) * noisy.step)]


@dataclass(frozen=True)
class MeanOf(Aggregate):
    """The mean of a numeric attribute: a released sum over a released count."""

    attribute: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"mean({self.attribute})",)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        numeric(dataset, self.attribute)
        return CentredSum(self.attribute), Count()

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        attribute = numeric(dataset, self.attribute)
        sums, centre = self._sums(released, dataset)
        means = centre + sums.step * sums.values / np.maximum(released[Count()].values, 1)
        return [np.clip(means, attribute.lower, attribute.upper)]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        attribute = numeric(dataset, self.attribute)
        box = self.around_centre(released, dataset, miss / 2, released[Count()].box(miss / 2))
        _, centre = self._sums(released, dataset)
        means = Box(centre + box.low, centre + box.high)
        return [means.within(attribute.lower, attribute.upper)]

    def around_centre(
        self, released: Released, dataset: Dataset, miss: Fraction, counts: Box
    ) -> Box:
        """Intervals of the mean less the public centre, given those of the counts."""
        sums, _ = self._sums(released, dataset)
        box = quotients(sums.box(miss), counts)
        return Box(box.low * sums.step, (box.high + 1) * sums.step)

    def _sums(self, released: Released, dataset: Dataset) -> tuple[Noisy, float]:
        part = CentredSum(self.attribute)
        sums = released[part]
        return sums, part.origin(dataset, sums.plan.exponent) * sums.step

    def centre(self, released: Released, dataset: Dataset) -> float:
        """The number around which the released sum is centred."""
        return self._sums(released, dataset)[1]


@dataclass(frozen=True)
class VarianceOf(Aggregate):
    """The variance of a numeric attribute: the mean square less the square of the mean.

    It divides by the number of rows, not by one less.
    """

    attribute: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"variance({self.attribute})",)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        numeric(dataset, self.attribute)
        return CentredSquares(self.attribute), CentredSum(self.attribute), Count()

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        counts = np.maximum(released[Count()].values, 1)
        squared, sums = released[CentredSquares(self.attribute)], released[self._sum]
        offset, origin, most = self._facts(released, dataset)
        mean_square = squared.step * (squared.values / counts + origin)
        mean = offset + sums.step * sums.values / counts
        return [np.clip(mean_square - mean**2, 0.0, most)]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        counts = released[Count()].box(miss / 3)
        squared = released[CentredSquares(self.attribute)]
        offset, origin, most = self._facts(released, dataset)
        ratio = quotients(squared.box(miss / 3), counts)
        # Each squared number was rounded in doubles and then down to a grid step. ``error`` bounds
        # both roundings together.
        error = squared.step + _SQUARE_ERROR * most
        mean_square = Box(
            squared.step * (ratio.low + origin) - error,
            squared.step * (ratio.high + origin) + error,
        ).within(0.0, most)
        mean = MeanOf(self.attribute).around_centre(released, dataset, miss / 3, counts)
        reach = most**0.5
        square = squares(Box(mean.low + offset, mean.high + offset).within(-reach, reach))
        return [Box(mean_square.low - square.high, mean_square.high - square.low).within(0.0, most)]

    @property
    def _sum(self) -> CentredSum:
        return CentredSum(self.attribute)

    def _facts(self, released: Released, dataset: Dataset) -> tuple[float, int, float]:
        """The distance between both centres, the origin of squares, the largest variance."""
        part, squared = CentredSquares(self.attribute), released[CentredSquares(self.attribute)]
        attribute = numeric(dataset, self.attribute)
        offset = MeanOf(self.attribute).centre(released, dataset) - part.middle(dataset)
        most = (attribute.upper / 2 - attribute.lower / 2) ** 2
        return offset, part.origin(dataset, squared.plan.exponent), most


@dataclass(frozen=True)
class QuantilesOf(Aggregate):
    """Quantiles of a numeric attribute, from released counts between public edges.

    ``shares`` are the shares of numbers below, each in (0, 1). Rows outside of ``edges`` and
    missing cells do not count. Without ``edges`` they are those of the attribute.
    """

    attribute: str
    shares: tuple[float, ...]
    edges: tuple[float, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"quantile({self.attribute}, {q})" for q in self.shares)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        return (self._part(dataset),)

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        part = self._part(dataset)
        edges = np.array(part.edges)
        return [quantile_values(released[part].values, edges, q) for q in self.shares]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        part = self._part(dataset)
        noisy, edges = released[part], np.array(part.edges)
        return [
            quantile_boxes(noisy.values, edges, q, noisy.noise, noisy.terms, float(miss))
            for q in self.shares
        ]

    def _part(self, dataset: Dataset) -> Histogram:
        return Histogram(self.attribute, self.edges or numeric(dataset, self.attribute).edges)
