"""The number of rows that meet a condition."""

from dataclasses import dataclass, field

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.level_tables import cells_as_rows, rows_read, stored_table
from mechanisms.model.table_candidates import table_domain
from mechanisms.model.work import NOTHING, Work
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.predicate import (
    Condition,
    condition_work,
    fits,
    holds,
    is_always,
    level_attributes,
)
from mechanisms.statistics.statistic import Measurement, Part
from mechanisms.statistics.tables import BLOCK, blocks, most_rows


@dataclass(frozen=True)
class Count(Part):
    """The global sensitivity is 1 under both relations, because one change affects one row."""

    name = "count"
    is_count = True
    title = "Count"
    description = "How many rows meet a condition; without one, how many there are."
    source = "One row changes the count by at most one."

    where: Condition = field(default_factory=lambda: {"all": []})
    what = "count"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        table_domain(dataset)
        fits(self.where, dataset)
        return whole_plan(1, epsilon_nano)

    def work(self, dataset: Dataset) -> Work:
        if is_always(self.where):
            return NOTHING
        names = level_attributes(self.where, dataset)
        rows = most_rows(dataset)
        if names is not None:
            rows = rows_read(dataset, names, rows)
        return condition_work(self.where, rows, dataset)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        table = context.table
        rows = table.rows
        if is_always(self.where):
            return Measurement(rows >> plan.exponent)

        names = level_attributes(self.where, context.dataset)
        stored = None if names is None else stored_table(context.dataset, names)
        if stored is not None and stored in table.tables:
            # Each cell of a stored table serves as one row, with its count as a weight. This gives
            # the same count in less work than all rows take.
            cells = table.tables[stored]
            met = holds(self.where, cells_as_rows(context.dataset, stored), context.dataset)
            return Measurement(int((cells.ravel() * met(slice(None))).sum()) >> plan.exponent)

        met = holds(self.where, table, context.dataset)

        def part(start: int) -> int:
            return int(met(slice(start, min(start + BLOCK, rows))).sum())

        counts = context.executor.map(part, blocks(context.dataset))
        return Measurement(sum(counts) >> plan.exponent)
