"""The columns of a released table and of its margins: values, intervals, raw values.

Post-processing: everything here follows from released numbers and the public plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.cells import margin as summed
from mechanisms.tables.aggregates import Noisy, Numbers, Summands
from mechanisms.tables.consistency import MeasuredMargin, adjusted
from mechanisms.tables.intervals import Box
from mechanisms.tables.parts import Count, Part, RowSum
from mechanisms.tables.persons import Persons
from mechanisms.tables.plan import Measurement, TablePlan
from mechanisms.tables.request import Margin
from mechanisms.tables.suppression import Axes, Truths, suppressed
from mechanisms.tables.tabulate import ReleasedTable

#: The confidence interval of each number holds with at least this probability.
CONFIDENCE = Fraction(95, 100)
MISS = 1 - CONFIDENCE


@dataclass(frozen=True)
class Column:
    """One aggregate of every cell, in row-major order: shape (cells,) each.

    ``raw`` is the value before it was adjusted; None if nothing was. The interval is of ``raw``.
    ``suppressed`` marks numbers that must not be shown; None where the dataset suppresses none.
    """

    value: Numbers
    box: Box
    raw: Numbers | None = None
    suppressed: Truths | None = None


Columns = Mapping[str, Column]


class TableColumns:
    """Works out the columns of one released table."""

    def __init__(self, plan: TablePlan, released: ReleasedTable) -> None:
        self._plan, self._released = plan, released
        self._measured = {(one.part, one.margin): one for one in plan.measurements}
        self._cells = {part: self._adjusted(part) for part in released.cells}
        self._suppressed = self._small() if plan.dataset.minimum_count else None

    def table(self) -> Columns:
        """The columns of all cells."""
        return self._columns(None)

    def totals(self) -> Iterator[tuple[Margin, bool, Columns]]:
        """Each margin, whether it has noise of its own, and its columns.

        A margin that is not measured has no column for parts that do not add up, such as persons.
        """
        for margin in self._plan.margins():
            measured = margin in self._plan.request.margins
            if columns := self._columns(margin):
                yield margin, measured, columns

    def _columns(self, margin: Margin | None) -> dict[str, Column]:
        dataset = self._plan.dataset
        raw = {
            part: self._raw(part, margin)
            for part in self._released.cells
            if isinstance(part, RowSum) or (part, margin) in self._measured
        }
        final = {part: self._final(part, margin, noisy) for part, noisy in raw.items()}
        columns: dict[str, Column] = {}
        small = None if self._suppressed is None else self._suppressed_of(margin).ravel()
        for one in self._plan.request.aggregates:
            parts = one.parts(dataset)
            if not raw.keys() >= {*parts}:
                continue
            adjusts = self._plan.request.non_negative or (
                self._plan.request.consistent and any(isinstance(part, RowSum) for part in parts)
            )
            boxes = one.boxes(raw, dataset, MISS)
            values = one.values(final, dataset)
            before = one.values(raw, dataset) if adjusts else [None] * len(values)
            for name, value, box, first in zip(one.columns, values, boxes, before, strict=True):
                flat = Box(box.low.ravel(), box.high.ravel())
                before_it = None if first is None else first.ravel()
                columns[name] = Column(value.ravel(), flat, before_it, small)
        return columns

    def _raw(self, part: Part, margin: Margin | None) -> Noisy:
        """The released numbers: measured ones where a margin has them, else sums of the cells."""
        measured = self._measured.get((part, margin))
        if measured is not None:
            values = self._released.cells[part]
            if margin is not None:
                values = self._released.margins[part, margin]
            return self._noisy(measured, values, 1)
        assert margin is not None
        values = self._summed(self._released.cells[part], margin)
        noisy = self._noisy(self._measured[part, None], values, self._plan.merged(margin))
        if self._suppressed is None:
            return noisy
        return noisy._replace(summands=Summands(self._summands(margin), part == Count()))

    def _final(self, part: Part, margin: Margin | None, raw: Noisy) -> Noisy:
        """The numbers of the answer: those released, or sums of the adjusted cells."""
        request = self._plan.request
        if request.consistent and isinstance(part, RowSum):
            cells = self._cells[part]
            whole = (part, margin) in self._measured
            values = cells if margin is None else self._summed(cells, margin, whole=whole)
        else:
            values = raw.values
        if request.non_negative and part.is_never_negative(self._plan.dataset):
            values = np.maximum(values, 0)
        return raw._replace(values=values)

    def _adjusted(self, part: Part) -> Numbers:
        """The cells that agree with all measured margins of the part."""
        cells, plan = self._released.cells[part], self._plan
        if not (plan.request.consistent and isinstance(part, RowSum)):
            return cells
        margins = [
            MeasuredMargin(
                plan.axes(margin),
                self._released.margins[part, margin],
                self._measured[part, margin].noise.variance,
            )
            for margin in plan.request.margins
        ]
        variance = self._measured[part, None].noise.variance
        return adjusted(cells, variance, margins, len(plan.shape))

    def _noisy(self, measured: Measurement, values: Numbers, terms: int) -> Noisy:
        return Noisy(values, measured.grid, measured.noise, terms, self._plan.rows)

    def _summed(self, cells: Numbers, margin: Margin, *, whole: bool = False) -> Numbers:
        """The margin of the cells, without suppressed ones unless it is the ``whole`` margin."""
        if self._suppressed is not None and not whole:
            visible = ~self._suppressed[self._axes(None)]
            cells = cells * visible.reshape(*visible.shape, *(1,) * (cells.ndim - visible.ndim))
        bins = range(len(self._plan.shape), cells.ndim)
        return summed(cells, (*self._plan.axes(margin), *bins))

    def _axes(self, margin: Margin | None) -> Axes:
        return tuple(range(len(self._plan.shape))) if margin is None else self._plan.axes(margin)

    def _small(self) -> Mapping[Axes, Truths]:
        """The suppressed numbers of the cells and of each measured margin."""
        counts: dict[Axes, list[Numbers]] = {}
        for margin in (None, *self._plan.request.margins):
            released = self._released.cells[Count()]
            adjusted_cells = self._cells[Count()]
            if margin is None:
                versions = [released, adjusted_cells]
            else:
                whole = summed(adjusted_cells, self._plan.axes(margin))
                versions = [self._released.margins[Count(), margin], whole]
            # Counts below the owner's minimum count are suppressed. If totals are made consistent,
            # the adjusted counts are compared with the minimum as well as the released ones.
            # Otherwise the answer shows only the released counts, so only these are compared.
            used = versions if self._plan.request.consistent else versions[:1]
            if Persons() in self._released.cells:
                used = [*used, self._raw(Persons(), margin).values]
            counts[self._axes(margin)] = used
        return suppressed(counts, self._plan.dataset.minimum_count)

    def _suppressed_of(self, margin: Margin | None) -> Truths:
        """The suppressed numbers: of a margin without noise of its own, sums of no visible cell."""
        assert self._suppressed is not None
        own = self._suppressed.get(self._axes(margin))
        return self._summands(margin or ()) == 0 if own is None else own

    def _summands(self, margin: Margin) -> NDArray[np.int64]:
        """The number of visible cells that each number of an unmeasured margin sums."""
        assert self._suppressed is not None
        visible = (~self._suppressed[self._axes(None)]).astype(np.int64)
        return summed(visible, self._plan.axes(margin))
