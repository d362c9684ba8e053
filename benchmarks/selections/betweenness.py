"""Egocentric betweenness of all nodes: the compiled kernels against igraph, in the same rounds.

igraph takes the induced subgraph of every closed neighbourhood and the betweenness of its centre.
Both start from a graph in memory and are warm. Their values must agree to 10⁻⁶, relative to the
larger of 1 and the value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.execution import ThreadExecutor
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import read_edge_list
from benchmarks.result import Result
from benchmarks.rounds import Rounds, wall
from mechanisms.kernels.graphs.egocentric import GRID_BITS, egocentric_block
from mechanisms.kernels.graphs.graph import Nodes, Offsets, compressed_rows
from mechanisms.kernels.graphs.ranks import equal_blocks, ranked, search_work

COMPARED = ("enron", "github")
WORKERS = 2


def run(result: Result, setting: Setting) -> None:
    executor = ThreadExecutor(WORKERS)
    for name in COMPARED:
        compared(result, setting, name, executor)
    executor.close()


def compared(result: Result, setting: Setting, name: str, executor: ThreadExecutor) -> None:
    from igraph import Graph

    sources, targets, nodes = read_edge_list(setting.data, name)
    rows = compressed_rows(sources, targets, nodes)
    graph = Graph(n=nodes, edges=np.column_stack((sources, targets)))
    # igraph takes minutes for all nodes, so a quick run gives it only 500 nodes at random.
    size = min(nodes, setting.size(nodes, 500))
    chosen = np.sort(np.random.default_rng(0).permutation(nodes)[:size])
    ways = {
        "kernels": wall(lambda: all_egos(*rows, executor)),
        "igraph": wall(lambda: by_igraph(graph, chosen)),
    }
    # This call warms the compiled kernels up before the timed rounds. igraph needs no warm-up.
    all_egos(*rows, executor)
    rounds = Rounds.of("seconds", ways, 3, warm=0)
    rounds.report(result, f"{name}, igraph on {size:,} of {nodes:,} nodes")
    ratio = rounds.ratio("igraph", "kernels") * nodes / size
    result.measure(f"{name}: igraph / kernels", ratio, "×")
    expected = by_igraph(graph, chosen)
    values = all_egos(*rows, executor)[chosen] / 2**GRID_BITS
    error = float(np.max(np.abs(values - expected) / np.maximum(1, expected)))
    result.measure(f"{name}: largest difference", error)


def all_egos(indptr: Offsets, indices: Nodes, executor: ThreadExecutor) -> Offsets:
    """Betweenness of all nodes from compressed rows, as ``prepare_graph`` works it out."""
    graph = ranked(indptr, indices)
    blocks = equal_blocks(search_work(graph), 16 * executor.workers)
    parts = executor.map(lambda block: egocentric_block(graph, *block)[1], blocks)
    steps = np.empty(graph.nodes, np.int64)
    steps[graph.order] = np.concatenate(parts)
    return steps


def by_igraph(graph: Any, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    values = np.empty(len(nodes))
    for i, v in enumerate(nodes.tolist()):
        ego = graph.induced_subgraph(graph.neighborhood(v))
        # The subgraph keeps the order of its nodes, so the index of the centre v is the number of
        # its neighbours with smaller numbers.
        centre = sum(w < v for w in graph.neighbors(v))
        values[i] = ego.betweenness(vertices=centre)
    return values


BENCHES = (
    Bench("betweenness", "How fast is egocentric betweenness of all nodes, and is it right?",
          run, 600.0, ("igraph",), (Bar("*: largest difference", most=1e-6),),
          edges_of(*COMPARED)),
)  # fmt: skip
