"""Graphs to show with: one that is real and ships with NetworkX, one larger that is generated."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

GENERATED_NODES = 20_000


def les_miserables() -> Any:
    """Who appears with whom in Hugo's novel: 77 characters, by name (Knuth 1993)."""
    import networkx

    return networkx.les_miserables_graph()


def generated() -> Any:
    """A clustered graph with a heavy-tailed degree: 20,000 nodes, about 100,000 edges."""
    import networkx

    return networkx.powerlaw_cluster_graph(GENERATED_NODES, 5, 0.3, seed=2021)


def write_csv(graph: Any, path: Path) -> Path:
    """``source,target`` and one edge a line; compressed when the name ends in ``.gz``."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["source", "target"])
    lines.writerows(graph.edges())
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def true_top(graph: Any, k: int) -> list[Any]:
    """The k nodes of largest egocentric betweenness, as only the owner of the graph can know."""
    import networkx

    def egocentric_betweenness(node: Any) -> float:
        ego = networkx.ego_graph(graph, node)
        return float(networkx.betweenness_centrality(ego, normalized=False)[node])

    return sorted(graph, key=lambda node: (-egocentric_betweenness(node), str(node)))[:k]
