"""Checks the nodes and edges of a GraphML or node-link document against the graph's domain."""

from collections.abc import Sequence
from typing import Any

from mechanisms.model.domains import GraphDomain
from storage.errors import TooLarge
from storage.files.labels import node_index
from storage.ingest.batches import Batch, Numbering
from storage.ingest.graph import UNKNOWN_NODE, CodedGraph, EdgeCollector
from storage.ingest.refusals import refuse_any

Names = Sequence[int] | Sequence[str]


def graph_of(
    domain: GraphDomain,
    nodes: Names,
    node_numbers: Numbering,
    sources: Names,
    targets: Names,
    edge_numbers: Numbering,
    most_edges: int,
) -> CodedGraph:
    """The graph of a document, from lists of names that are all integers or all strings.

    ``node_numbers`` and ``edge_numbers`` say where nodes and edges stand in the document.
    Raises: InvalidRecords as ``EdgeCollector`` does, and for a node outside the domain.
    """
    codes = node_index(domain.nodes, domain.labels).codes(_column(nodes))
    refuse_any(node_numbers.refusals(codes < 0, *UNKNOWN_NODE))
    edges = EdgeCollector(domain, most_edges)
    columns = {"source": _column(sources), "target": _column(targets)}
    edges.add(Batch(columns, len(sources), edge_numbers))
    return edges.finish()


def check_size(size: int, limit: int) -> None:
    """Refuse a document that is too large to be parsed as a whole."""
    if size > limit:
        raise TooLarge(f"a document may have at most {limit} bytes; send larger graphs as CSV")


def _column(names: Names) -> Any:
    import pyarrow as pa

    if names and isinstance(names[0], str):
        return pa.array(names, pa.string())
    return pa.array(names, pa.int64())
