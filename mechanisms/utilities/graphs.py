"""What the utilities of graph nodes share: the domain and the columns they read, and their grid."""

from __future__ import annotations

from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.domains import Dataset, GraphDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import GraphRecords, Records
from mechanisms.model.sensitivity import Integers


def graph_domain(dataset: Dataset) -> GraphDomain:
    """The public description of a graph; UnsupportedQuery for any other kind of dataset."""
    if not isinstance(dataset.domain, GraphDomain):
        raise UnsupportedQuery("this utility is of graph nodes", supported={"kind": "graph"})
    return dataset.domain


def node_column(records: Records, name: str) -> Integers:
    """One prepared private column as int64, shape (nodes,)."""
    if not isinstance(records, GraphRecords):
        raise TypeError("the utilities of nodes are measured on graph records")
    return records.columns[name].astype("int64")


def finest_bits(units: int, most: int) -> int:
    """The largest g ≤ ``most`` with units · 2^g < 2⁶²; UnsupportedQuery when no g ≥ 1 fits.

    ``units`` is a public bound on utilities and on the sums of δ that will be formed.
    """
    bits = min(most, LIMIT.bit_length() - 1 - units.bit_length())
    if bits < 1:
        raise UnsupportedQuery(
            "the public bound on degrees is too large for exact arithmetic with this utility; "
            "a smaller max_degree or another sensitivity may fit"
        )
    return bits
