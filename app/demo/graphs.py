"""A large generated graph, its file of edges, and its true top nodes for comparison."""

import csv
import gzip
from pathlib import Path
from typing import Any

import networkx

GENERATED_NODES = 20_000


def generated() -> Any:
    """A clustered graph with heavy-tailed degrees: 20,000 nodes and about 100,000 edges."""
    return networkx.powerlaw_cluster_graph(GENERATED_NODES, 5, 0.3, seed=2021)


def write_csv(graph: Any, path: Path) -> Path:
    """Write the edges as CSV, one per line; compressed if the name ends in ``.gz``."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["source", "target"])
        lines.writerows(graph.edges())
    return path


def true_top(graph: Any, k: int) -> list[Any]:
    """The k nodes of largest egocentric betweenness, computed from private edges without noise."""

    def egocentric_betweenness(node: Any) -> float:
        ego = networkx.ego_graph(graph, node)
        return float(networkx.betweenness_centrality(ego, normalized=False)[node])

    return sorted(graph, key=lambda node: (-egocentric_betweenness(node), str(node)))[:k]
