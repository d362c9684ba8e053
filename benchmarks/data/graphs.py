"""Real graphs for benches: ``NAME.edges.csv.gz`` with a header ``source,target``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

Nodes = NDArray[np.int32]
EdgeList = tuple[Nodes, Nodes, int]


def read_edge_list(folder: Path, name: str) -> EdgeList:
    """Sources, targets and the number of nodes; ids numbered by size."""
    table = pyarrow.csv.read_csv(folder / f"{name}.edges.csv.gz")
    ends = [table["source"].to_numpy(), table["target"].to_numpy()]
    nodes = np.unique(np.concatenate(ends))
    sources, targets = (np.searchsorted(nodes, column).astype(np.int32) for column in ends)
    return sources, targets, len(nodes)


def read_nodes(folder: Path, name: str) -> list[int]:
    """The ids of the nodes, in ascending order."""
    table = pyarrow.csv.read_csv(folder / f"{name}.edges.csv.gz")
    ends = [table["source"].to_numpy(), table["target"].to_numpy()]
    nodes: list[int] = np.unique(np.concatenate(ends)).tolist()
    return nodes


def random_edges(edges: int, nodes: int, skew: float) -> tuple[Nodes, Nodes]:
    """At most so many distinct edges in random order; the first nodes have the largest degrees."""
    random = np.random.default_rng(edges)
    ends = (nodes * random.random((edges + edges // 20, 2)) ** skew).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    # Not the first ones: they would all be of the same nodes.
    sources, targets = np.divmod(random.permutation(keys)[:edges], nodes)
    return sources.astype(np.int32), targets.astype(np.int32)
