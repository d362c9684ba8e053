"""The number of edges: one change always moves it by exactly one."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import GraphRecords, Records, records_of
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import ConstantBound
from mechanisms.statistics.single_part import SinglePart
from mechanisms.statistics.statistic import Measurement


@dataclass(frozen=True)
class Edges(SinglePart):
    """LS ≡ GS = 1, and 0 where no edge is possible; data-dependent noise gains nothing."""

    name = "edges"
    title = "Edges"
    description = "How many edges the graph has."
    source = "One edge changes the count by one."

    what = "number of edges"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        domain = graph_domain(dataset)
        return whole_plan(int(domain.nodes > 1 and domain.max_degree > 0), epsilon_nano)

    def measure(
        self, records: Records, dataset: Dataset, plan: Plan, executor: Executor
    ) -> Measurement:
        edges = len(records_of(GraphRecords, records).indices) // 2
        one = ConstantBound(plan.cap)
        return Measurement(edges >> plan.exponent, local=one, levels=one)
