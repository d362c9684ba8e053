"""The number of edges: one change moves it by one, everywhere and always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.statistics.graphs import graph_domain, graph_records
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local import Constant
from mechanisms.statistics.single import Single
from mechanisms.statistics.statistic import Measured


@dataclass(frozen=True)
class Edges(Single):
    """LS ≡ GS = 1 (0 where no edge is possible): noise that follows the records gains nothing."""

    name: ClassVar[str] = "edges"
    title: ClassVar[str] = "Edges"
    description: ClassVar[str] = "How many edges the graph has."
    source: ClassVar[str] = "One edge changes the count by one."

    what = "number of edges"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        domain = graph_domain(dataset)
        return whole_plan(int(domain.nodes > 1 and domain.max_degree > 0), epsilon_nano)

    def measure(
        self,
        records: Records,
        dataset: Dataset,  # noqa: ARG002 - the same in every domain
        plan: Plan,
        executor: Executor,  # noqa: ARG002 - nothing to split
    ) -> Measured:
        edges = len(graph_records(records).indices) // 2
        one = Constant(plan.cap)
        return Measured(edges >> plan.exponent, local=one, levels=one)
