"""The common part of statistics of graphs: the public bound on common neighbours, and the
totals."""

from __future__ import annotations

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.records import GraphRecords, Records, records_of


def most_shared(dataset: Dataset) -> int:
    """m = min(n − 2, D − 1) ≥ 0: the most neighbours that a pair may share.

    Both nodes of a pair stay within n nodes and degree D when their edge is present.
    """
    domain = graph_domain(dataset)
    return max(min(domain.nodes - 2, domain.max_degree - 1), 0)


def total(records: Records, name: str) -> int:
    """One prepared private total (``mechanisms.kernels.totals``)."""
    return int(records_of(GraphRecords, records).totals[name][0])
