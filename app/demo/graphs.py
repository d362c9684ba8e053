"""A large graph to show with, and what the owner of a graph does with it."""

import csv
import gzip
from pathlib import Path
from typing import Any

import networkx

GENERATED_NODES = 20_000


def generated() -> Any:
    """A clustered graph with a heavy-tailed degree: 20,000 nodes, about 100,000 edges."""
    return networkx.powerlaw_cluster_graph(GENERATED_NODES, 5, 0.3, seed=2021)


def write_csv(graph: Any, path: Path) -> Path:
    """``source,target`` and one edge a line; compressed when the name ends in ``.gz``."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["source", "target"])
        lines.writerows(graph.edges())
    return path


def true_top(graph: Any, k: int) -> list[Any]:
    """The k nodes of largest egocentric betweenness, as only the owner of the graph can know."""

    def egocentric_betweenness(node: Any) -> float:
        ego = networkx.ego_graph(graph, node)
        return float(networkx.betweenness_centrality(ego, normalized=False)[node])

    return sorted(graph, key=lambda node: (-egocentric_betweenness(node), str(node)))[:k]
