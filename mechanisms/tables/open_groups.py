"""Numbers by groups whose values are not public: only groups above a threshold come back.

Danger: which groups occur is private, and so are their number and their order in memory. Every row
has a key, and rows of no group have one too, up to the public bound on the rows. Sorting, counting
and noise run over all of them. What comes back is sorted by value, which is a public order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.cells import TILE, Axis
from mechanisms.kernels.radix import order_of
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.open_domain import MOST_VALUES, OpenAttribute
from mechanisms.model.table_candidates import attribute_named
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.noise.addition import Integers
from mechanisms.noise.discrete_laplace import likely_error
from mechanisms.noise.order import largest_in_public_order
from mechanisms.noise.rate import Rate
from mechanisms.noise.threshold import least_threshold
from mechanisms.statistics.predicate import comparisons, fits, holds, is_always, part_work
from mechanisms.tables.aggregates import CountOf
from mechanisms.tables.grouping import Grouping, Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.parts import Count, Histogram, Part, RowSum
from mechanisms.tables.plan import Measurement, TablePlan
from mechanisms.tables.request import TableRequest
from mechanisms.tables.work import column_work

#: The most groups of one answer. If more groups have a noisy count that reaches the threshold,
#: those with the largest noisy counts are returned.
MOST_GROUPS = 10_000
#: The sort key of rows that are in no group. It is above the keys of all groups.
NO_GROUP = 1 << 62
#: Bytes of memory that a query declares for each row of the public bound. The first number is for
#: the keys, their order, the counts and their noise. The second is for each sum that is released
#: beside the count: its values, the sums of the groups, and their noise.
ROW_BYTES, PART_BYTES = 80, 48


def is_open(grouping: Grouping, dataset: Dataset) -> bool:
    """True if a grouping is by the values of an open attribute."""
    if not isinstance(grouping, Levels):
        return False
    return isinstance(attribute_named(dataset, grouping.attribute), OpenAttribute)


class Groups(NamedTuple):
    """Released groups in public order: a label per axis and group, and the noisy numbers by part"""

    labels: tuple[tuple[str, ...], ...]
    cells: Mapping[Part, Integers]

    @property
    def counts(self) -> Integers:
        """The noisy numbers of rows, each at least the threshold."""
        return self.cells[Count()]


@dataclass(frozen=True)
class OpenPlan(TablePlan):
    """The public plan of a table by open groups, whose one axis are the released groups.

    The request has a count and no totals; ``of`` makes it so. The share of the count releases the
    groups with all of δ. The groups are public from there on, so the other parts are measured on
    public cells.
    Raises: UnsupportedQuery, here or in its members, if it does not fit.
    """

    @classmethod
    def of(cls, request: TableRequest, dataset: Dataset, loss: PrivacyLoss) -> Self:
        """The plan of a request. Raises: UnsupportedQuery for all but sums over rows."""
        if loss.unpriced:
            raise UnsupportedQuery(
                "groups by an open attribute take epsilon and delta",
                supported={"amount": ["epsilon"]},
            )
        if request.margins:
            raise UnsupportedQuery(
                "groups by an open attribute have no measured totals, as the cells that would add "
                "up to them are private",
                supported={"totals": ["sums", "none"]},
            )
        if not all(_is_sum(part) for one in request.aggregates for part in one.parts(dataset)):
            raise UnsupportedQuery(
                "groups by an open attribute have sums over their rows: no quantiles, as every row "
                "could be a group of its own, with noise in all of its bins, and no persons",
                supported={"aggregates": ["count", "sum", "mean", "variance"]},
            )
        return cls(replace(request.with_count(dataset), totals="none"), dataset, loss)

    @classmethod
    def of_counts(cls, attribute: str, dataset: Dataset, loss: PrivacyLoss) -> Self:
        """The plan that counts the values of one open attribute."""
        return cls.of(TableRequest((Levels(attribute),), (CountOf(),), (None,)), dataset, loss)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.groups,)

    @property
    def groups(self) -> int:
        """The public bound on the groups of the answer."""
        return min(self.rows, MOST_GROUPS)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The public number of values of each axis."""
        return tuple(
            MOST_VALUES if is_open(one, self.dataset) else len(one.labels(self.dataset))
            for one in self.request.by
        )

    @cached_property
    def rate(self) -> Rate:
        """The rate of the noise on counts."""
        noise = next(one.noise for one in self.measurements if one.part == Count())
        assert isinstance(noise, LaplaceNoise)
        return noise.rate

    @cached_property
    def threshold(self) -> int:
        """The least noisy count that comes back: for privacy, and by the policy of the dataset."""
        private = least_threshold(self.rate, self.loss.delta_atto)
        return max(private, self.dataset.minimum_count)

    def simultaneous_error(self, confidence: float) -> int:
        """How far counts of groups that occur are off at most, all together with this probability.

        It holds for selected groups too. No more groups occur than there are rows or keys.
        """
        return likely_error(self.rate, confidence, min(self.rows, prod(self.sizes)))

    def steps(self) -> tuple[Step, ...]:
        """The steps that spend the loss. Raises: UnsupportedQuery if anything does not fit."""
        fits(self.request.where, self.dataset)
        if prod(self.sizes) > NO_GROUP:
            raise UnsupportedQuery(
                "there are too many combinations of values", supported={"open attributes": 3}
            )
        return tuple(self._step(one) for one in self.measurements)

    def _step(self, one: Measurement) -> Step:
        if one.part != Count():
            return Step(f"Laplace noise: {one.part.what}", PrivacyLoss(one.loss.epsilon_nano))
        what = f"Laplace noise and threshold {self.threshold}: counts of at most {self.groups}"
        loss = PrivacyLoss(one.loss.epsilon_nano, self.loss.delta_atto)
        return Step(f"{what} groups", loss)

    def work(self) -> Work:
        """The public work of ``release_groups`` and of the columns of its answer."""
        by, where, parts = self.request.by, self.request.where, len(self.measurements)
        read = sum(one.comparisons for one in by) + comparisons(where, self.dataset)
        # Every part besides the count reads one value per row, in the order of the sorted rows.
        # This order jumps about in memory and takes longer.
        values = work("values of open groups", self.rows * (parts - 1), parts - 1)
        return together(
            work("rows of open groups", self.rows * (read + self.rows.bit_length())),
            values if parts > 1 else NOTHING,
            work("numbers of tables", self.rows * parts),
            part_work(where, self.dataset),
            *(one.work(self.dataset) for one in by),
            column_work(self),
        )

    @property
    def row_bytes(self) -> int:
        """The bytes of memory for each row of the public bound."""
        return ROW_BYTES + PART_BYTES * (len(self.measurements) - 1)


def release_groups(context: QueryContext, plan: OpenPlan) -> Groups:
    """The groups whose noisy counts reach the threshold, in the public order of their values.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴ for n noises, whatever the records.
    Privacy: ``plan.loss``, (ε, δ), under the dataset's relation. The counts release the groups, as
        in ``mechanisms.noise.threshold``. The other parts are then sums over public cells, with the
        rest of ε by sequential composition. Groups that no row has never come back, so their slots'
        noise is not released.
    """
    keys = _keys(context, plan)
    order = order_of(keys.view(np.uint64))
    ordered = keys[order]
    first, ends = _runs(ordered)
    noisy: dict[Part, Integers] = {}
    for one in plan.measurements:
        sums = _sums(context, plan, one, order, ends)
        exact = np.where(first, sums, 0)
        noisy[one.part] = one.noise.add(exact, context.randomness, context.executor)
    counts = noisy[Count()]
    is_released = first & (ordered != NO_GROUP) & (counts >= min(plan.threshold, NO_GROUP))
    # The groups selected here are released, so everything after this line is public.
    released, values = ordered[is_released], counts[is_released]
    largest = np.ones(len(released), np.bool_)
    if len(released) > plan.groups:
        largest[:] = False
        largest[largest_in_public_order(values, plan.groups)] = True
    cells = {part: numbers[is_released][largest] for part, numbers in noisy.items()}
    return Groups(_labels(context, plan, released[largest]), cells)


def largest_groups(groups: Groups, k: int) -> Groups:
    """The k released groups of largest noisy counts, largest first; equal ones in public order.

    There are fewer if fewer were released. Privacy: reads released numbers alone.
    """
    if len(groups.counts) == 0:
        return groups
    places = largest_in_public_order(groups.counts, min(k, len(groups.counts)))
    labels = (tuple(axis[place] for place in places.tolist()) for axis in groups.labels)
    cells = {part: numbers[places] for part, numbers in groups.cells.items()}
    return Groups(tuple(labels), cells)


def _is_sum(part: Part) -> bool:
    """True if ``_sums`` measures the part: one number for each group, a sum over its rows."""
    return isinstance(part, RowSum) and not isinstance(part, Histogram)


def _keys(context: QueryContext, plan: OpenPlan) -> Integers:
    """The group of each row as one number, in row-major order of the axes; private."""
    table, dataset = context.table, plan.dataset
    keys = np.full(plan.rows, NO_GROUP, np.int64)
    axes = [None if is_open(one, dataset) else one.axis(table, dataset) for one in plan.request.by]
    where = plan.request.where
    met = None if is_always(where) else holds(where, table, dataset)
    for start in range(0, table.rows, TILE):
        block = slice(start, min(start + TILE, table.rows))
        key = np.zeros(block.stop - start, np.int64)
        is_inside = np.ones(len(key), np.bool_)
        if met is not None:
            is_inside = met(block)
        for one, axis, size in zip(plan.request.by, axes, plan.sizes, strict=True):
            groups = _groups(axis, table.codes[one.attribute], block)
            is_inside = is_inside & (groups >= 0)
            key = key * size + np.maximum(groups, 0)
        keys[block] = np.where(is_inside, key, NO_GROUP)
    return keys


def _groups(axis: Axis | None, codes: NDArray[Any], rows: slice) -> Integers:
    """The group of each of these rows on one axis, −1 for none; codes of an open one as they are"""
    if axis is None:
        return codes[rows].astype(np.int64)
    return axis.groups[axis.codes(rows)]


def _runs(ordered: Integers) -> tuple[NDArray[np.bool_], Integers]:
    """Where each run of equal keys begins, and for each place the place after its run."""
    size = len(ordered)
    first = np.ones(size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    places = np.arange(size)
    next_first = np.minimum.accumulate(np.where(first, places, size)[::-1])[::-1]
    return first, np.append(next_first[1:], size)


def _sums(
    context: QueryContext, plan: OpenPlan, one: Measurement, order: Integers, ends: Integers
) -> Integers:
    """The exact sum of a part from each place to the end of its run; private."""
    places = np.arange(plan.rows)
    if one.part == Count():
        return ends - places
    assert isinstance(one.part, RowSum)
    read = one.part.measure(context.table, plan.dataset, one.grid).values
    assert read is not None
    rows = context.table.rows
    values = np.zeros(plan.rows, np.int64)
    for start in range(0, rows, TILE):
        block = slice(start, min(start + TILE, rows))
        values[block] = read(block)
    # All partial sums fit 64 bits, because the public bound on rows times the largest value does.
    before = np.concatenate([[0], np.cumsum(values[order])])
    sums: Integers = before[ends] - before[places]
    return sums


def _labels(
    context: QueryContext, plan: OpenPlan, released: Integers
) -> tuple[tuple[str, ...], ...]:
    """The labels of released keys by axis."""
    columns = []
    for one, size in zip(reversed(plan.request.by), reversed(plan.sizes), strict=True):
        released, codes = np.divmod(released, size)
        if is_open(one, plan.dataset):
            values = context.table.open_values[one.attribute]
            columns.append(tuple(map(values.text, codes.tolist())))
        else:
            labels = one.labels(plan.dataset)
            columns.append(tuple(labels[code] for code in codes.tolist()))
    return tuple(reversed(columns))
