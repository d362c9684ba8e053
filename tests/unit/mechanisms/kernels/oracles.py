"""Graphs to count on, and plain Python twins of the compiled kernels.

The twins follow the definitions with sets and dictionaries; nothing here is fast.
"""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from mechanisms.kernels.graphs.graph import compressed_rows

REFERENCE_NODES = ["a", "b", "v0", "v1", "v2", "v3", "v4", "v5"]
#: The graph of the worked examples in the paper on local dampening. Its nodes are numbered in the
#: order of ``REFERENCE_NODES``.
REFERENCE = nx.Graph()
REFERENCE.add_nodes_from(range(8))
REFERENCE.add_edges_from([(0, v) for v in (1, 2, 3, 4, 5)] + [(1, v) for v in (4, 5, 6, 7)])
REFERENCE.add_edges_from([(2, 3), (6, 7)])


def numbered(graph: nx.Graph) -> nx.Graph:
    return nx.convert_node_labels_to_integers(graph)


NAMED = {
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(7),
    "one edge": nx.path_graph(2),
    "path": nx.path_graph(9),
    "cycle": nx.cycle_graph(8),
    "star": nx.star_graph(300),
    "wheel": nx.wheel_graph(90),
    "clique": nx.complete_graph(70),
    "clique without an edge": nx.complement(
        nx.disjoint_union(nx.path_graph(2), nx.empty_graph(38))
    ),
    "complete bipartite": nx.complete_bipartite_graph(17, 40),
    "three parts": numbered(nx.complete_multipartite_graph(5, 30, 40)),
    "lollipop": nx.lollipop_graph(66, 5),
    "two cliques at one node": numbered(
        nx.compose(nx.complete_graph(9), nx.relabel_nodes(nx.complete_graph(7), lambda v: -v))
    ),
    "book": nx.complement(nx.disjoint_union(nx.empty_graph(2), nx.complete_graph(60))),
    "isolated among others": nx.disjoint_union_all(
        [nx.empty_graph(3), nx.complete_graph(4), nx.empty_graph(2), nx.star_graph(5)]
    ),
    "sparse": nx.gnp_random_graph(200, 0.03, seed=1),
    "half": nx.gnp_random_graph(150, 0.5, seed=2),
    "dense": nx.gnp_random_graph(90, 0.9, seed=3),
    "power law": nx.powerlaw_cluster_graph(400, 6, 0.6, seed=4),
    "caves": nx.gaussian_random_partition_graph(160, 14, 3, 0.8, 0.02, seed=5),
}


@st.composite
def graphs(draw: st.DrawFn, largest: int = 30) -> nx.Graph:
    nodes = draw(st.integers(1, largest))
    density = draw(st.sampled_from([0.05, 0.2, 0.5, 0.8, 0.97]))
    return nx.gnp_random_graph(nodes, density, seed=draw(st.integers(0, 2**32 - 1)))


def edge_list(graph: nx.Graph, seed: int = 0) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The edges of a numbered graph in a shuffled order, each a random way round."""
    rng = np.random.default_rng(seed)
    edges = np.array(graph.edges, dtype=np.int32).reshape(-1, 2)
    edges = rng.permuted(rng.permutation(edges), axis=1)
    return np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])


def rows_of(graph: nx.Graph) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return compressed_rows(*edge_list(graph), len(graph))


def neighbours(graph: nx.Graph) -> list[set[int]]:
    return [set(graph[v]) for v in range(len(graph))]


def rounded(shared: int, bits: int = 26) -> int:
    """τ(c): the nearest integer to 2^bits / (1 + c), halves up."""
    return ((2 << bits) + 1 + shared) // (2 * (1 + shared))


def shared_by_open_pairs(rows: list[set[int]], v: int) -> list[int]:
    """|N(a) ∩ N(b) ∩ N(v)| for the non-adjacent pairs of neighbours of v."""
    return [
        len(rows[a] & rows[b] & rows[v])
        for a, b in combinations(sorted(rows[v]), 2)
        if b not in rows[a]
    ]


def inner_edges(rows: list[set[int]], v: int) -> int:
    return sum(b in rows[a] for a, b in combinations(sorted(rows[v]), 2))


def betweenness_steps(rows: list[set[int]], v: int) -> int:
    return sum(rounded(shared) for shared in shared_by_open_pairs(rows, v))


def co_degree(rows: list[set[int]], v: int) -> int:
    return max((len(rows[v] & rows[w]) for w in range(len(rows)) if w != v), default=0)


def h_index(rows: list[set[int]], v: int) -> int:
    degrees = [len(rows[w]) for w in rows[v]]
    return max(h for h in range(len(degrees) + 1) if sum(d >= h for d in degrees) >= h)


def by_rank(graph: nx.Graph) -> tuple[list[int], list[set[int]]]:
    """The node of each rank, and the neighbours of each rank as ranks."""
    order = sorted(graph, key=lambda v: (-graph.degree[v], v))
    rank = {v: r for r, v in enumerate(order)}
    return order, [{rank[w] for w in graph[v]} for v in order]
