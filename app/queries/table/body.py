"""The body of ``table`` queries: grouped numbers of a table for one charge."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from accounting.composition import for_group
from accounting.privacy_loss import NANO, PrivacyLoss
from app.contract.amounts import Delta
from app.queries.parts.accuracy import least_loss, only
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.table.answer import answer_of, errors_of
from app.queries.table.open_answer import open_accuracy, open_answer
from app.queries.table.parameters import AggregateBody, By, MeasuredBody, grouping_of
from app.queries.table.sentence import sentence
from mechanisms.kernels.cells import PARTS
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.release import Release
from mechanisms.model.table_candidates import table_domain
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK
from mechanisms.statistics.predicate import comparisons, condition, condition_bytes, part_work
from mechanisms.statistics.tables import most_rows
from mechanisms.tables.columns import CONFIDENCE, MISS, TableColumns
from mechanisms.tables.open_groups import MOST_GROUPS, OpenPlan, is_open, release_groups
from mechanisms.tables.persons import Persons
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals, TableRequest
from mechanisms.tables.tabulate import release
from mechanisms.tables.work import column_work

#: The accuracy that a quote may target: the error of the first measured number of every cell.
ERROR = "error"
MAX_BY = 6
#: Bytes of memory for each released number. Up to ``PARTS`` blocks of rows are added up in
#: parallel, each into a sum of its own. Copies, the interval and the JSON take the rest.
NUMBER_BYTES = 8 * (PARTS + 4) + 400
#: If small numbers are suppressed, the work on released numbers is this many times as long.
_SUPPRESSING = 4


class Table(Query):
    """Releases a table of grouped numbers for one charge."""

    name: ClassVar[str] = "table"
    title: ClassVar[str] = "Private table"
    description: ClassVar[str] = (
        "Counts, persons, sums, means, variances and quantiles by groups of up to six attributes, "
        "each with an interval. Every cell of the public domain is released, and all cells "
        "together cost what one number costs."
    )

    targets: ClassVar[tuple[str, ...]] = (ERROR,)
    gaussian: ClassVar[bool] = True

    kind: Literal["table"]
    by: tuple[By, ...] = Field(
        default=(),
        max_length=MAX_BY,
        description=(
            "Attributes by name (their values or bins), {attribute, edges} for other bins, or "
            "{attribute, groups: {name: [values]}}; none gives one cell."
        ),
    )
    aggregates: tuple[AggregateBody, ...] = Field(
        default=(AggregateBody(name="count"),), min_length=1, max_length=20
    )
    where: dict[str, Any] | None = Field(
        default=None,
        description=(
            "{attribute, in: […]}, {attribute, from, to} (from ≤ value < to), {all: […]}, "
            "{any: […]} or {not: …}; at most 8 deep and 1,000 values"
        ),
    )
    totals: Literal["sums", "none"] | MeasuredBody = Field(
        default="sums",
        description=(
            "`sums` of the cells (free), `none`, or {measured: [[attribute…]…], share}. Totals of "
            "`persons` are measured or absent, never sums."
        ),
    )
    consistent: bool | None = Field(
        default=None,
        description=(
            "Adjust the cells to the measured totals by least squares; by default where totals are "
            "measured."
        ),
    )
    non_negative: bool = Field(
        default=False,
        description=(
            "Show 0 in place of negative counts and sums; they are then too high on average."
        ),
    )

    delta: Delta = Field(
        default=0, description="Of groups by an attribute whose values are open: above 0, charged."
    )

    @field_validator("where")
    @classmethod
    def _well_formed_condition(cls, value: Any) -> Any:
        return None if value is None else condition(value)

    @model_validator(mode="after")
    def _well_formed(self) -> Table:
        self.request  # noqa: B018 - raises for parts that do not fit together
        return self

    @cached_property
    def request(self) -> TableRequest:
        """The table as the mechanism reads it. Raises: ValueError."""
        totals: MeasuredTotals | Literal["sums", "none"]
        if isinstance(self.totals, MeasuredBody):
            share = Fraction(self.totals.share, NANO)
            totals = MeasuredTotals(self.totals.measured, share)
        else:
            totals = self.totals
        is_measured = isinstance(totals, MeasuredTotals)
        return TableRequest(
            by=tuple(grouping_of(one) for one in self.by),
            aggregates=tuple(one.aggregate() for one in self.aggregates),
            shares=tuple(one.part_of_loss() for one in self.aggregates),
            where={"all": []} if self.where is None else self.where,
            totals=totals,
            consistent=is_measured and self.consistent is not False,
            non_negative=self.non_negative,
        )

    def delta_atto(self) -> int:
        return self.delta

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        if self._is_open(dataset):
            groups = self._open_plan(dataset, share)
            steps = for_group(groups.steps(), dataset.records_per_person)
            return Price((*steps, *conversion), lambda: open_accuracy(groups))
        if self.delta:
            raise UnsupportedQuery(
                "only groups by an open attribute take a delta", supported={"delta": "0"}
            )
        plan = TablePlan(self.request.counted(dataset), dataset, share)
        steps = for_group(plan.steps(), dataset.records_per_person)
        return Price((*steps, *conversion), lambda: accuracy_of(plan))

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error = only(target, ERROR)
        if self._is_open(dataset):
            raise UnsupportedQuery(
                "the error of open groups follows from epsilon and delta together",
                supported={"target": []},
            )

        def plan(loss: PrivacyLoss) -> TablePlan:
            return TablePlan(self.request.counted(dataset), dataset, loss)

        def first_error(loss: PrivacyLoss) -> float:
            first = plan(loss).measurements[0]
            return first.noise.half_width(1, MISS) * float(first.grid.step)

        return charge_for(dataset, least_loss(first_error, error, lambda loss: plan(loss).steps()))

    def _is_open(self, dataset: Dataset) -> bool:
        return any(is_open(one, dataset) for one in self.request.by)

    def _open_plan(self, dataset: Dataset, loss: PrivacyLoss) -> OpenPlan:
        return OpenPlan.of(self.request, dataset, loss)

    def memory(self, dataset: Dataset) -> int:
        of_levels = condition_bytes(self.where, dataset)
        if self._is_open(dataset):
            plan = self._open_plan(dataset, PrivacyLoss(NANO * NANO, 1))
            numbers = plan.groups * (len(plan.measurements) + len(plan.request.aggregates))
            more = numbers * NUMBER_BYTES + of_levels
            return memory(dataset, record=plan.row_bytes, more=more)
        more = self._numbers(dataset) * NUMBER_BYTES + of_levels
        return memory(dataset, record=0, more=more)

    def cells(self, dataset: Dataset) -> int:
        if self._is_open(dataset):
            return min(most_rows(dataset), MOST_GROUPS)
        return self._plan(dataset).cells * max(self._widths(dataset))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        share, _ = mechanism_loss(dataset, loss)
        if self._is_open(dataset):
            return self._open_plan(dataset, share).work()
        plan = TablePlan(self.request.counted(dataset), dataset, share)
        numbers, read = self._numbers(dataset), self._read(dataset)
        times = _SUPPRESSING if dataset.minimum_count else 1
        times *= GAUSSIAN_WORK if loss.unpriced else 1
        # Each attribute that groups the table is an axis. The adjustment that makes cells and
        # margins add up changes all numbers once for each subset of the axes, of which there are
        # 2^len(by).
        adjusted = numbers << len(self.by) if self.request.consistent else 0
        return together(
            work("rows of tables", plan.rows_read * read),
            work("numbers of tables", numbers * times),
            work("adjusted numbers", adjusted),
            self._work_on_persons(dataset),
            part_work(self.request.where, dataset),
            *(one.work(dataset) for one in self.request.by),
            column_work(plan),
        )

    def _read(self, dataset: Dataset) -> int:
        """The comparisons and additions of one row: its groups, its condition, and its parts."""
        groups = sum(one.comparisons for one in self.request.by)
        # A histogram is one part of a cell with a number for each bin. A binary search finds the
        # bin of each row, with as many comparisons as the number of bins has bits.
        bins = sum(width.bit_length() for width in self._widths(dataset))
        return groups + comparisons(self.request.where, dataset) + bins

    def _work_on_persons(self, dataset: Dataset) -> Work:
        """The second pass over the rows, which counts persons in all cells and each margin."""
        counts = sum(isinstance(part, Persons) for part, _ in self.request.weights(dataset))
        if not counts:
            return NOTHING
        groups = sum(one.comparisons for one in self.request.by)
        read = groups + comparisons(self.request.where, dataset) + counts
        return work("rows of persons", most_rows(dataset) * read)

    def _plan(self, dataset: Dataset) -> TablePlan:
        """The plan at a loss that fits every table; only its sizes are read."""
        return TablePlan(self.request.counted(dataset), dataset, PrivacyLoss(NANO * NANO))

    def _widths(self, dataset: Dataset) -> list[int]:
        """The numbers of each measured part of a cell."""
        weights = self.request.counted(dataset).weights(dataset)
        return [part.width for part, margin in weights if margin is None]

    def _numbers(self, dataset: Dataset) -> int:
        """The most released numbers, with those of all margins."""
        # Margins add at most one label ("all") to each axis. So this product bounds the numbers of
        # the cells and of all margins together.
        totals = prod(size + 1 for size in self._plan(dataset).shape)
        columns = sum(len(one.columns) for one in self.request.counted(dataset).aggregates)
        return totals * (sum(self._widths(dataset)) + columns)

    def lowerable(self) -> tuple[str, ...]:
        return ("by", "aggregates")

    def compute(self, context: QueryContext) -> Release:
        share, _ = mechanism_loss(context.dataset, context.loss)
        if self._is_open(context.dataset):
            groups = self._open_plan(context.dataset, share)
            return Release(open_answer(groups, release_groups(context.at(share), groups)))
        plan = TablePlan(self.request.counted(context.dataset), context.dataset, share)
        released = release(context.at(share), plan)
        return Release(answer_of(plan, TableColumns(plan, released)))

    def question(self, dataset: Dataset, version: int) -> str:
        return sentence(
            self.aggregates, self.by, self.totals, self.where, version_of(dataset, version)
        )


def accuracy_of(plan: TablePlan) -> dict[str, Any]:
    """Predicts the error of every measured number, from public facts alone."""
    return {
        "confidence": float(CONFIDENCE),
        "cells": plan.cells,
        "parts": errors_of(plan),
        "explanation": (
            "With this probability each released number is within its `error` of the true one. "
            "Means, variances and quantiles are made of these numbers, so their intervals depend "
            "on the answer." + _of_kept_rows(plan.dataset)
        ),
    }


def _of_kept_rows(dataset: Dataset) -> str:
    if table_domain(dataset).person is None:
        return ""
    return f" The true ones are those of kept rows, at most {dataset.records_per_person} a person."
