"""The number of edges, and what statistics of graphs share: public bounds, and the totals."""

from dataclasses import dataclass

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.records import GraphRecords, Records, records_of
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import ConstantBound
from mechanisms.statistics.statistic import Measurement, Part


@dataclass(frozen=True)
class Edges(Part):
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


def most_shared(dataset: Dataset) -> int:
    """m = min(n − 2, D − 1) ≥ 0: the most neighbours that a pair may share.

    Both nodes of a pair stay within n nodes and degree D when their edge is present.
    """
    domain = graph_domain(dataset)
    return max(min(domain.nodes - 2, domain.max_degree - 1), 0)


def most_second_order(dataset: Dataset) -> int:
    """4·(n − 2): no flip changes LS of two-triangles by more, in any graph."""
    return max(4 * (graph_domain(dataset).nodes - 2), 1)


def total(records: Records, name: str) -> int:
    """One prepared private total (``mechanisms.kernels.totals``)."""
    return int(records_of(GraphRecords, records).totals[name][0])
