"""What the statistics of graphs share: the public bound on common neighbours, and the totals."""

from __future__ import annotations

from mechanisms.model.domains import Dataset, GraphDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import GraphRecords, Records


def most_shared(dataset: Dataset) -> int:
    """m = min(n − 2, D − 1) ≥ 0: no pair that may be flipped shares more neighbours, for both its
    nodes keep within n nodes and degree D when the edge is there."""
    domain = graph_domain(dataset)
    return max(min(domain.nodes - 2, domain.max_degree - 1), 0)


def graph_domain(dataset: Dataset) -> GraphDomain:
    if not isinstance(dataset.domain, GraphDomain):
        raise UnsupportedQuery("this statistic is of graphs only", supported={"kind": "graph"})
    return dataset.domain


def graph_records(records: Records) -> GraphRecords:
    if not isinstance(records, GraphRecords):
        raise TypeError("statistics of graphs are measured on graph records")
    return records


def total(records: Records, name: str) -> int:
    """One prepared total (``mechanisms.kernels.totals``)."""
    return int(graph_records(records).totals[name][0])
