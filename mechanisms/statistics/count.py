"""The number of rows that meet a condition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.model.table_candidates import table_domain
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.predicate import Condition, condition, fits, holds
from mechanisms.statistics.single import Single
from mechanisms.statistics.statistic import Measured
from mechanisms.statistics.tables import table_records

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Count(Single):
    """GS = 1 under both relations: a replacement changes one row's truth value at most."""

    name: ClassVar[str] = "count"
    title: ClassVar[str] = "Count"
    description: ClassVar[str] = "How many rows meet a condition; without one, how many there are."
    source: ClassVar[str] = "One row changes the count by at most one."

    where: Condition = field(default_factory=lambda: condition({"all": []}))
    what = "count"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        table_domain(dataset)
        fits(self.where, dataset)
        return whole_plan(1, epsilon_nano)

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measured:
        table = table_records(records)
        rows = len(next(iter(table.codes.values())))
        if not self.where.body.get("all", True):
            # Every row meets no conditions: nothing to look at, whatever the number of rows.
            return Measured(rows >> plan.exponent)

        def part(start: int) -> int:
            block = slice(start, min(start + _BLOCK, rows))
            return int(holds(self.where, table, dataset, block).sum())

        return Measured(sum(executor.map(part, range(0, rows, _BLOCK))) >> plan.exponent)
