"""Egocentric betweenness of all nodes: the compiled kernels against igraph, in one run.

    python -m benchmarks.egocentric_betweenness --data DIR

igraph takes the induced subgraph of every closed neighbourhood and the betweenness of its centre.
Both start from a graph in memory and are warm. The values must agree to 10⁻⁶, relative to the
larger of 1 and the value. Then the times of all prepared columns, and the memory they took.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import igraph
import numpy as np
from numpy.typing import NDArray

from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.graphs import data_option, read_edge_list
from mechanisms.kernels.egocentric import GRID_BITS, egocentric_block
from mechanisms.kernels.graph import Nodes, Offsets, compressed_rows, first_duplicate
from mechanisms.kernels.preparation import preparation_work, prepare_graph
from mechanisms.kernels.ranks import equal_blocks, ranked, search_work

P = ParamSpec("P")
Result = TypeVar("Result")

COMPARED = ("enron", "github")
PREPARED = ("github", "enron", "dblp", "gowalla")


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--repeats", type=int, default=3, help="runs a median is taken of")
    parser.add_argument("--workers", type=int, default=2, help="threads for the kernels")
    parser.add_argument("--sample", type=int, help="igraph on this many random nodes only")
    options = parser.parse_args()
    executor = ThreadExecutor(options.workers)
    warm()

    print(f"{'all columns':12}{'nodes':>9}{'edges':>10}{'rows s':>9}{'duplicates s':>14}", end="")
    print(f"{'work':>13}{'prepare s':>11}{'ns a step':>11}{'peak MiB':>10}")
    for name in PREPARED:
        print(prepared(name, options, executor), flush=True)

    print(f"\n{'betweenness':12}{'igraph s':>10}{'kernels s':>11}{'ratio':>8}{'largest error':>15}")
    errors = []
    for name in COMPARED:
        line, error = compared(name, options, executor)
        print(line, flush=True)
        errors.append(error)
    executor.close()
    if max(errors) > 1e-6:
        sys.exit("the values differ by more than 10⁻⁶")


def prepared(name: str, options: Namespace, executor: ThreadExecutor) -> str:
    edges = read_edge_list(options.data, name)
    rows_time, rows = timed(options.repeats, compressed_rows, *edges)
    duplicates_time, _ = timed(options.repeats, first_duplicate, *edges)
    work = preparation_work(*rows)
    before = peak_mebibytes()
    time_, _ = timed(options.repeats, prepare_graph, *rows, executor)
    return (
        f"{name:12}{edges[2]:9}{len(edges[0]):10}{rows_time:9.3f}{duplicates_time:14.3f}"
        f"{work:13}{time_:11.3f}{time_ * 1e9 / work:11.2f}{peak_mebibytes() - before:+10.0f}"
    )


def compared(name: str, options: Namespace, executor: ThreadExecutor) -> tuple[str, float]:
    sources, targets, nodes = read_edge_list(options.data, name)
    rows = compressed_rows(sources, targets, nodes)
    graph = igraph.Graph(n=nodes, edges=np.column_stack((sources, targets)))
    chosen = np.arange(nodes)
    if options.sample is not None and options.sample < nodes:
        chosen = np.sort(np.random.default_rng(0).permutation(nodes)[: options.sample])
    ours, steps = timed(options.repeats, all_egos, *rows, executor)
    theirs, expected = timed(options.repeats, by_igraph, graph, chosen, name)
    theirs *= nodes / len(chosen)
    found = steps[chosen] / 2**GRID_BITS
    error = float(np.max(np.abs(found - expected) / np.maximum(1, expected)))
    return f"{name:12}{theirs:10.2f}{ours:11.3f}{theirs / ours:7.0f}×{error:15.1e}", error


def all_egos(indptr: Offsets, indices: Nodes, executor: ThreadExecutor) -> Offsets:
    """Betweenness of all nodes from compressed rows, as ``prepare_graph`` works it out."""
    graph = ranked(indptr, indices)
    blocks = equal_blocks(search_work(graph), 16 * executor.workers)
    parts = executor.map(lambda block: egocentric_block(graph, *block)[1], blocks)
    steps = np.empty(graph.nodes, np.int64)
    steps[graph.order] = np.concatenate(parts)
    return steps


def by_igraph(graph: igraph.Graph, nodes: NDArray[np.int64], name: str) -> NDArray[np.float64]:
    values = np.empty(len(nodes))
    for i, v in enumerate(nodes.tolist()):
        if i % 1000 == 0 and sys.stderr.isatty():
            print(f"\rigraph on {name}: {i} of {len(nodes)}", end="\r", file=sys.stderr)
        ego = graph.induced_subgraph(graph.neighborhood(v))
        # Vertices keep their order, so the centre stands behind its smaller neighbours.
        centre = sum(w < v for w in graph.neighbors(v))
        values[i] = ego.betweenness(vertices=centre)
    return values


def timed(
    repeats: int, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs
) -> tuple[float, Result]:
    """The median wall time of some runs, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work(*args, **kwargs)
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
