"""Counts by groups whose values are not public: only groups above a threshold come back.

Danger: which groups occur is private, and so are their number and their order in memory. Every row
has a key, and rows of no group have one too, up to the public bound on the rows. Sorting, counting
and noise run over all of them. What comes back is sorted by value, which is a public order.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

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
from mechanisms.model.work import Work, together, work
from mechanisms.noise.addition import Integers
from mechanisms.noise.discrete_laplace import discrete_laplace, likely_error
from mechanisms.noise.order import largest_in_public_order
from mechanisms.noise.rate import Rate
from mechanisms.noise.threshold import least_threshold
from mechanisms.statistics.predicate import Condition, comparisons, fits, holds, part_work
from mechanisms.statistics.tables import most_rows, replaces
from mechanisms.tables.grouping import Grouping, Levels

#: The most groups of one answer. If more reach the threshold, those with the largest noisy counts
#: are returned.
MOST_GROUPS = 10_000
#: The key of rows that are in no group; it is above the keys of all groups.
NO_GROUP = 1 << 62
#: Bytes of memory for each row of the public bound: keys, their order, counts and noise.
ROW_BYTES = 80


def is_open(grouping: Grouping, dataset: Dataset) -> bool:
    """True if a grouping is by the values of an open attribute."""
    if not isinstance(grouping, Levels):
        return False
    return isinstance(attribute_named(dataset, grouping.attribute), OpenAttribute)


class Groups(NamedTuple):
    """Released groups in public order: a label per axis and group, and their noisy counts."""

    labels: tuple[tuple[str, ...], ...]
    counts: Integers


@dataclass(frozen=True)
class OpenPlan:
    """The public plan of counts by open groups. Raises: UnsupportedQuery if it does not fit."""

    by: tuple[Grouping, ...]
    where: Condition
    dataset: Dataset
    loss: PrivacyLoss

    @cached_property
    def rows(self) -> int:
        """The public bound on the rows, or their number under ``replace``."""
        rows = most_rows(self.dataset)
        if rows < 1:
            raise UnsupportedQuery("the public bound on the rows is not fixed yet")
        return rows

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The public number of values of each axis."""
        return tuple(
            MOST_VALUES if is_open(one, self.dataset) else len(one.labels(self.dataset))
            for one in self.by
        )

    @cached_property
    def rate(self) -> Rate:
        """One row changes one count by 1; a replacement moves two counts."""
        return Rate.of_counts(self.loss.epsilon_nano, 2 if replaces(self.dataset) else 1)

    @cached_property
    def threshold(self) -> int:
        """The least noisy count that comes back: for privacy, and by the policy of the dataset."""
        private = least_threshold(self.rate, self.loss.delta_atto)
        return max(private, self.dataset.minimum_count)

    @property
    def groups(self) -> int:
        """The public bound on the groups of the answer."""
        return min(self.rows, MOST_GROUPS)

    def simultaneous_error(self, confidence: float) -> int:
        """How far counts of groups that occur are off at most, all together with this probability.

        It holds for selected groups too. No more groups occur than there are rows or keys.
        """
        return likely_error(self.rate, confidence, min(self.rows, prod(self.sizes)))

    def steps(self) -> tuple[Step, ...]:
        """The step that spends the loss. Raises: UnsupportedQuery if anything does not fit."""
        fits(self.where, self.dataset)
        if prod(self.sizes) > NO_GROUP:
            raise UnsupportedQuery(
                "there are too many combinations of values", supported={"open attributes": 3}
            )
        what = f"Laplace noise and threshold {self.threshold}: counts of at most {self.groups}"
        return (Step(f"{what} groups", self.loss),)

    def work(self) -> Work:
        """The public work of ``release_groups``."""
        read = sum(one.comparisons for one in self.by) + comparisons(self.where, self.dataset)
        return together(
            work("rows of tables", self.rows * read),
            work("sorted rows", self.rows * self.rows.bit_length()),
            work("numbers of tables", self.rows),
            part_work(self.where, self.dataset),
            *(one.work(self.dataset) for one in self.by),
        )


def release_groups(context: QueryContext, plan: OpenPlan) -> Groups:
    """The groups whose noisy counts reach the threshold, in the public order of their values.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴ for n rows, whatever the records.
    Privacy: ``plan.loss``, (ε, δ), under the dataset's relation: noise of rate ε on the counts of
        groups that occur, and δ as in ``mechanisms.noise.threshold``. Groups that no row has never
        come back, so their slots' noise is not released.
    """
    keys = _keys(context, plan)
    ordered = keys[order_of(keys.view(np.uint64))]
    first, counts = _runs(ordered)
    noisy = discrete_laplace(counts, plan.rate, context.randomness, context.executor)
    is_released = first & (ordered != NO_GROUP) & (noisy >= min(plan.threshold, NO_GROUP))
    # The groups selected here are released, so all that follows is public.
    released, values = ordered[is_released], noisy[is_released]
    if len(released) > plan.groups:
        largest = np.zeros(len(released), np.bool_)
        largest[largest_in_public_order(values, plan.groups)] = True
        released, values = released[largest], values[largest]
    return Groups(_labels(context, plan, released), values)


def largest_groups(groups: Groups, k: int) -> Groups:
    """The k released groups of largest noisy counts, largest first; equal ones in public order.

    There are fewer if fewer were released. Privacy: reads released numbers alone.
    """
    if len(groups.counts) == 0:
        return groups
    places = largest_in_public_order(groups.counts, min(k, len(groups.counts)))
    labels = (tuple(axis[place] for place in places.tolist()) for axis in groups.labels)
    return Groups(tuple(labels), groups.counts[places])


def _keys(context: QueryContext, plan: OpenPlan) -> Integers:
    """The group of each row as one number, in row-major order of the axes; private."""
    table, dataset = context.table, plan.dataset
    keys = np.full(plan.rows, NO_GROUP, np.int64)
    axes = [None if is_open(one, dataset) else one.axis(table, dataset) for one in plan.by]
    rows = len(next(iter(table.codes.values())))
    always = not plan.where.get("all", True)
    met = None if always else holds(plan.where, table, dataset)
    for start in range(0, rows, TILE):
        block = slice(start, min(start + TILE, rows))
        key = np.zeros(block.stop - start, np.int64)
        is_inside = np.ones(len(key), np.bool_)
        if met is not None:
            is_inside = met(block)
        for one, axis, size in zip(plan.by, axes, plan.sizes, strict=True):
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
    """Where each run of equal keys begins, and its length there; 0 at all other places."""
    size = len(ordered)
    first = np.ones(size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    places = np.arange(size)
    next_first = np.minimum.accumulate(np.where(first, places, size)[::-1])[::-1]
    lengths = np.append(next_first[1:], size) - places
    return first, np.where(first, lengths, 0)


def _labels(
    context: QueryContext, plan: OpenPlan, released: Integers
) -> tuple[tuple[str, ...], ...]:
    """The labels of released keys by axis."""
    columns = []
    for one, size in zip(reversed(plan.by), reversed(plan.sizes), strict=True):
        released, codes = np.divmod(released, size)
        if is_open(one, plan.dataset):
            values = context.table.open_values[one.attribute]
            columns.append(tuple(map(values.text, codes.tolist())))
        else:
            labels = one.labels(plan.dataset)
            columns.append(tuple(labels[code] for code in codes.tolist()))
    return tuple(reversed(columns))
