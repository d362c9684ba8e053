"""Noisy counts of records by class, over several groups of attributes, for one charge.

Each group is a table of its own: a cell for each class at each combination of the public levels of
its attributes. The tables read the same records, so they have equal shares of the loss. The cells
of one table hold disjoint records, so its share is that of one count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.sensitivity import Integers
from mechanisms.model.work import Work, together, work
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK
from mechanisms.tables.aggregates import CountOf
from mechanisms.tables.columns import MISS
from mechanisms.tables.grouping import Levels
from mechanisms.tables.parts import Count
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import TableRequest
from mechanisms.tables.tabulate import release
from mechanisms.tables.work import column_work

#: The attributes of one table of record counts by class, in the order of its axes. A table without
#: attributes has the counts of the classes alone.
Group = tuple[str, ...]


@dataclass(frozen=True)
class ClassCounts:
    """The public plan of the tables. ``loss`` is that of all of them together.

    Raises: UnsupportedQuery, in its members, if the tables do not fit the dataset or if a share of
        the loss is too small.
    """

    groups: tuple[Group, ...]
    class_name: str
    dataset: Dataset
    loss: PrivacyLoss

    @cached_property
    def tables(self) -> tuple[TablePlan, ...]:
        """One plan per group. The losses add up to ``loss``, and the last has the remainder."""
        shares = self.loss.weighted([Fraction(1, len(self.groups))] * len(self.groups))
        return tuple(
            TablePlan(_counts_by((*group, self.class_name)), self.dataset, share)
            for group, share in zip(self.groups, shares, strict=True)
        )

    def steps(self) -> tuple[Step, ...]:
        """One step per table; they add up to the loss exactly."""
        return tuple(
            replace(step, what=f"noisy counts of {self.class_name}{_by(group)} (disjoint records)")
            for group, table in zip(self.groups, self.tables, strict=True)
            for step in table.steps()
        )

    @cached_property
    def error(self) -> int:
        """The error that a count exceeds at most with chance ``MISS``.

        It is that of the tables with the smallest share, which are all but the last.
        """
        share, _ = self.loss.shares(len(self.groups))
        table = TablePlan(_counts_by((*self.groups[0], self.class_name)), self.dataset, share)
        (one,) = table.measurements
        return one.noise.half_width(1, MISS)

    @property
    def cells(self) -> int:
        """The number of all counts."""
        return sum(table.cells for table in self.tables)

    def work(self) -> Work:
        """The public work of the release and of its intervals."""
        tables = zip(self.groups, self.tables, strict=True)
        read = sum(table.rows_read * (len(group) + 2) for group, table in tables)
        times = GAUSSIAN_WORK if self.loss.unpriced else 1
        return together(
            work("rows of tables", read, len(self.groups)),
            work("numbers of tables", 2 * self.cells * times, len(self.groups)),
            *(column_work(table) for table in self.tables),
        )


def release_counts(context: QueryContext, plan: ClassCounts) -> list[Integers]:
    """The noisy counts of each table, shape (levels of each attribute …, classes).

    Privacy: ``plan.loss`` under the dataset's relation, by sequential composition over the tables
        and by parallel composition over the cells of each.
    """
    tables = plan.tables
    return [release(context.at(one.loss), one).cells[Count()] for one in tables]


def _counts_by(names: Sequence[str]) -> TableRequest:
    by = tuple(Levels(name) for name in names)
    return TableRequest(by=by, aggregates=(CountOf(),), shares=(None,), totals="none")


def _by(group: Group) -> str:
    return f" by {' and '.join(group)}" if group else ""
