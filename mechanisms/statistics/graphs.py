"""The number of edges, and the public bounds and private totals that all graph statistics read."""

from dataclasses import dataclass

from mechanisms.model.candidates import graph_domain
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.records import GraphRecords
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import ConstantBound
from mechanisms.statistics.statistic import Measurement, Part


@dataclass(frozen=True)
class Edges(Part):
    """One change moves the count by exactly 1, so data-dependent noise gains nothing."""

    name = "edges"
    is_count = True
    title = "Edges"
    description = "How many edges the graph has."
    source = "One edge changes the count by one."

    what = "number of edges"

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        domain = graph_domain(dataset)
        return whole_plan(int(domain.nodes > 1 and domain.max_degree > 0), epsilon_nano)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        edges = len(context.graph.indices) // 2
        one = ConstantBound(plan.cap)
        return Measurement(edges >> plan.exponent, local=one, levels=one)


def most_shared(dataset: Dataset) -> int:
    """Return m = max(0, min(n − 2, D − 1)), the most neighbours that a pair of nodes may share.

    n nodes and the largest degree D are public, and hold also when the pair has an edge.
    """
    domain = graph_domain(dataset)
    return max(min(domain.nodes - 2, domain.max_degree - 1), 0)


def most_second_order(dataset: Dataset) -> int:
    """The most that one edge moves the local sensitivity of two-triangles: 4·(nodes − 2)."""
    return max(4 * (graph_domain(dataset).nodes - 2), 1)


def total(graph: GraphRecords, name: str) -> int:
    """Return one private total of the graph; ``mechanisms.kernels.graphs.totals`` lists them."""
    return int(graph.totals[name][0])
