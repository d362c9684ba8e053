"""Real graphs for benches: ``NAME.edges.csv.gz`` with a header ``source,target``."""

from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.records import GraphRecords

Nodes = NDArray[np.int32]
EdgeList = tuple[Nodes, Nodes, int]


def read_edge_list(folder: Path, name: str) -> EdgeList:
    """Sources, targets and the number of nodes; ids numbered by size."""
    nodes, ends = _ids(folder, name)
    sources, targets = (np.searchsorted(nodes, column).astype(np.int32) for column in ends)
    return sources, targets, len(nodes)


def read_nodes(folder: Path, name: str) -> list[int]:
    """The ids of the nodes, in ascending order."""
    ids: list[int] = _ids(folder, name)[0].tolist()
    return ids


def _ids(folder: Path, name: str) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    table = pyarrow.csv.read_csv(folder / f"{name}.edges.csv.gz")
    ends = [table["source"].to_numpy(), table["target"].to_numpy()]
    return np.unique(np.concatenate(ends)), ends


def induced(edges: EdgeList, chosen: NDArray[np.int64]) -> EdgeList:
    """The subgraph of the chosen nodes, as a graph of its own."""
    sources, targets, nodes = edges
    place = np.full(nodes, -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    inside = (place[sources] >= 0) & (place[targets] >= 0)
    return place[sources[inside]], place[targets[inside]], len(chosen)


def graph_records(
    edges: EdgeList, executor: Executor | None = None, totals: bool = False
) -> GraphRecords:
    """The graph with its columns, and its totals if asked for, prepared as the service does."""
    rows, executor = compressed_rows(*edges), executor or Inline()
    columns = prepare_graph(*rows, executor)
    if not totals:
        return GraphRecords(*rows, columns)
    return GraphRecords(*rows, columns, prepare_totals(*rows, columns["co_degree"], executor))


def graph_dataset(name: str, nodes: int, max_degree: int | None = None) -> Dataset:
    """A graph of which one edge changes; without a bound on degrees, their bound is nodes − 1."""
    domain = GraphDomain(nodes, nodes - 1 if max_degree is None else max_degree)
    return Dataset(name, NeighbouringRelation.EDGE, domain)


def random_edges(edges: int, nodes: int, skew: float) -> tuple[Nodes, Nodes]:
    """At most so many distinct edges in random order; the first nodes have the largest degrees."""
    random = np.random.default_rng(edges)
    ends = (nodes * random.random((edges + edges // 20, 2)) ** skew).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    # Picks edges at random. The keys are sorted, so the first ones would all belong to the nodes of
    # largest degree.
    sources, targets = np.divmod(random.permutation(keys)[:edges], nodes)
    return sources.astype(np.int32), targets.astype(np.int32)
