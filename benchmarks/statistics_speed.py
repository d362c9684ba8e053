"""How fast statistics answer after preparation, and how fast they are prepared; verdicts last.

    python -m benchmarks.statistics_speed --data DIR

Triangles and two-triangles of the whole of gowalla by smooth sensitivity and by the ladder, and the
median of 10⁷ numbers, each through the mechanism as a query runs it. Supports of all edges against
the edge score of NetworKit, either from its own graph in memory with its edges indexed and at
whichever of one thread and all of them serves it best; the maximum over pairs without an edge
against the same search without its early end. Ratios are of medians of interleaved runs.
"""

from __future__ import annotations

import statistics
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable

import networkit as nk
import numpy as np

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.graphs import data_option, read_edge_list
from mechanisms.kernels.graph import compressed_rows
from mechanisms.kernels.pairs_of_nodes import open_maximum
from mechanisms.kernels.preparation import prepare_graph, prepare_totals
from mechanisms.kernels.ranks import ranked
from mechanisms.kernels.supports import edge_supports
from mechanisms.model.domains import (
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import GraphRecords, Records, TableRecords
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.quantile import Median
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.triangles import Triangles
from mechanisms.statistics.two_triangles import TwoTriangles

Clock = Callable[[], float]
GRAPHS = ("enron", "github", "dblp", "gowalla")
ROWS = 10**7
#: Threads of OpenMP, NetworKit's, go on spinning for milliseconds after their work is done, on the
#: core that the next run wants. Every timed run, of either side, starts after so many seconds.
REST = 0.02


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--repeats", type=int, default=5, help="runs a median is taken of")
    parser.add_argument("--workers", type=int, default=2, help="threads for the kernels")
    parser.add_argument(
        "--core-clock",
        action="store_true",
        help="seconds that cores spend on the process, for busy machines; best with --workers 1",
    )
    options = parser.parse_args()
    clock = time.process_time if options.core_clock else time.perf_counter
    executor = ThreadExecutor(options.workers)
    alone = ThreadExecutor(1)
    warm()
    verdicts: list[tuple[str, bool]] = []

    print(f"{'':10}{'supports, s':^24}{'NetworKit, s':^24}")
    threads = f"{'1 thread':>12}{f'{options.workers} threads':>12}"
    print(f"{'graph':10}{threads}{threads}{'ratio':>8}", end="")
    print(f"{'open s':>10}{'unpruned s':>12}{'ratio':>8}")
    for name in GRAPHS:
        sources, targets, nodes = read_edge_list(options.data, name)
        rows = compressed_rows(sources, targets, nodes)
        graph = ranked(*rows)
        theirs = nk.graph.Graph(nodes)
        for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
            theirs.addEdge(a, b)
        theirs.indexEdges()
        *ours, one, more = interleaved(
            clock,
            options.repeats,
            lambda graph=graph: edge_supports(graph, alone),
            lambda graph=graph: edge_supports(graph, executor),
            lambda theirs=theirs: edge_score(theirs, 1),
            lambda theirs=theirs: edge_score(theirs, options.workers),
        )
        others = min(one, more)
        scores = np.array(edge_score(theirs, 1).scores())
        if int(scores.sum()) != int(edge_supports(graph, executor).sum(dtype=np.int64)):
            sys.exit("NetworKit counts other triangles")
        pruned, whole = interleaved(
            clock,
            options.repeats,
            lambda graph=graph: open_maximum(graph),
            lambda graph=graph: open_maximum(graph, pruned=False),
        )
        print(f"{name:10}{ours[0]:12.4f}{ours[1]:12.4f}{one:12.4f}{more:12.4f}", end="")
        print(f"{others / min(ours):8.2f}", end="")
        print(f"{pruned:10.4f}{whole:12.4f}{whole / pruned:8.0f}", flush=True)
        verdicts.append((f"{name}: supports ≥ 2 × NetworKit", others >= 2 * min(ours)))
        verdicts.append((f"{name}: open maxima ≥ 10 × unpruned", whole >= 10 * pruned))

    print(f"\n{'answer':40}{'median s':>10}{'largest s':>11}")
    start = clock()
    columns = prepare_graph(*rows, executor)
    middle = clock()
    totals = prepare_totals(*rows, columns["co_degree"], executor)
    print(f"{'(gowalla: columns prepared)':40}{middle - start:10.3f}")
    print(f"{'(gowalla: totals prepared)':40}{clock() - middle:10.3f}")
    records = GraphRecords(*rows, columns, totals)
    dataset = Dataset("gowalla", NeighbouringRelation.EDGE, GraphDomain(nodes, nodes - 1))
    for statistic in (Triangles(), TwoTriangles()):
        for mechanism in ("smooth_sensitivity", "ladder"):
            for epsilon in (0.1, 1.0):
                label = f"gowalla {statistic.name} {mechanism} ε={epsilon}"
                spent = answered(
                    clock,
                    label,
                    statistic,
                    mechanism,
                    epsilon,
                    records,
                    dataset,
                    executor,
                    options.repeats,
                )
                verdicts.append((f"{label} ≤ 0.5 s", spent <= 0.5))
    numbers = np.random.default_rng(0).lognormal(11, 0.6, ROWS).clip(0, 1e6)
    start = clock()
    ordered = np.sort(numbers)
    print(f"{'(10⁷ numbers sorted)':40}{clock() - start:10.3f}")
    table = TableRecords({"x": np.zeros(ROWS, np.uint8)}, {"x": numbers}, {"x": ordered})
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        for upper in (1e6, 1e6 + 0.5):
            domain = TableDomain(
                (NumericAttribute("x", 0.0, upper, (0.0, upper)),), rows=ROWS, max_rows=ROWS
            )
            of = Dataset("numbers", relation, domain)
            for mechanism in ("exponential", "smooth_sensitivity"):
                label = f"median {mechanism} {relation} [0, {upper:.8g}]"
                spent = answered(
                    clock, label, Median("x"), mechanism, 1.0, table, of, executor, options.repeats
                )
                verdicts.append((f"{label} ≤ 0.2 s", spent <= 0.2))
    executor.close()
    alone.close()
    print()
    for what, held in verdicts:
        print(f"{'holds' if held else 'FAILS':6} {what}")
    if not all(held for _, held in verdicts):
        sys.exit(1)


def edge_score(graph: nk.graph.Graph, threads: int) -> nk.sparsification.TriangleEdgeScore:
    """NetworKit's number of triangles on every edge: its ``scores()``, not yet made a list."""
    nk.setNumberOfThreads(threads)
    return nk.sparsification.TriangleEdgeScore(graph).run()


def interleaved(clock: Clock, repeats: int, *works: Callable[[], object]) -> list[float]:
    """Median seconds of each, run in turn; each has run once before."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, found in zip(works, times, strict=True):
            time.sleep(REST)
            start = clock()
            work()
            if turn:
                found.append(clock() - start)
    return [statistics.median(found) for found in times]


def answered(
    clock: Clock,
    label: str,
    statistic: Statistic,
    mechanism: str,
    epsilon: float,
    records: Records,
    dataset: Dataset,
    executor: ThreadExecutor,
    repeats: int,
) -> float:
    """The median time of an answer, in seconds; printed with the largest."""
    delta = ATTO // 10**6 if mechanism == "smooth_sensitivity" else 0
    loss = PrivacyLoss(round(epsilon * NANO), delta)
    times = []
    for _ in range(repeats):
        start = clock()
        MECHANISMS[mechanism].release(
            statistic, records, dataset, loss, SystemRandomness(), executor
        )
        times.append(clock() - start)
    print(f"{label:40}{statistics.median(times):10.4f}{max(times):11.4f}", flush=True)
    return statistics.median(times)


if __name__ == "__main__":
    main()
