"""How fast statistics answer after preparation, and how fast they are prepared.

Triangles and two-triangles of the whole of gowalla by smooth sensitivity and by the ladder, and the
median of 10⁷ numbers, each through the mechanism as a query runs it. Supports of all edges against
the edge score of NetworKit, either from its own graph in memory with its edges indexed and at
whichever of one thread and all of them serves it best; the maximum over pairs without an edge
against the same search without its early end.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import read_edge_list
from benchmarks.result import Result
from benchmarks.rounds import Rounds, clocked, number, wall
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
from mechanisms.statistics.triangles import Triangles, TwoTriangles

GRAPHS = ("enron", "github", "dblp", "gowalla")
WORKERS = 2
#: Threads of OpenMP, NetworKit's, go on spinning for milliseconds after their work is done, on the
#: core that the next run wants. Every timed run, of either side, starts after so many seconds.
REST = 0.02


def run(setting: Setting) -> Result:
    result = Result()
    warm()
    executor, alone = ThreadExecutor(WORKERS), ThreadExecutor(1)
    for name in GRAPHS[:1] if setting.quick else GRAPHS:
        supports(result, setting, name, executor, alone)
    if not setting.quick:
        whole_graph(result, setting, executor)
    medians(result, setting, executor)
    executor.close()
    alone.close()
    return result


def supports(
    result: Result, setting: Setting, name: str, executor: ThreadExecutor, alone: ThreadExecutor
) -> None:
    sources, targets, nodes = read_edge_list(setting.data, name)
    graph = ranked(*compressed_rows(sources, targets, nodes))
    theirs = indexed(sources, targets, nodes)
    ways = {
        "supports, 1 thread": wall(lambda: edge_supports(graph, alone), REST),
        "supports, threads": wall(lambda: edge_supports(graph, executor), REST),
        "NetworKit, 1 thread": wall(lambda: edge_score(theirs, 1), REST),
        "NetworKit, threads": wall(lambda: edge_score(theirs, WORKERS), REST),
        "open maximum": wall(lambda: open_maximum(graph), REST),
        "open maximum, to the end": wall(lambda: open_maximum(graph, pruned=False), REST),
    }
    rounds = Rounds.of("seconds", ways, setting.times(5)).report(result, name)
    scores = np.array(edge_score(theirs, 1).scores())
    if int(scores.sum()) != int(edge_supports(graph, executor).sum(dtype=np.int64)):
        raise AssertionError("NetworKit counts other triangles")
    ours, *others = (
        min((f"{who}, 1 thread", f"{who}, threads"), key=rounds.median)
        for who in ("supports", "NetworKit")
    )
    result.measure(f"{name}: NetworKit / supports", rounds.ratio(others[0], ours), "×")
    ratio = rounds.ratio("open maximum, to the end", "open maximum")
    result.measure(f"{name}: pairs to the end / open maximum", ratio, "×")


def indexed(sources: Any, targets: Any, nodes: int) -> Any:
    """The graph as NetworKit holds it."""
    from networkit.graph import Graph

    graph = Graph(nodes)
    for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
        graph.addEdge(a, b)
    graph.indexEdges()
    return graph


def edge_score(graph: Any, threads: int) -> Any:
    """NetworKit's number of triangles on every edge: its ``scores()``, not yet made a list."""
    from networkit import setNumberOfThreads
    from networkit.sparsification import TriangleEdgeScore

    setNumberOfThreads(threads)
    return TriangleEdgeScore(graph).run()


def whole_graph(result: Result, setting: Setting, executor: ThreadExecutor) -> None:
    records, dataset, seconds = prepared(setting.data, executor)
    result.table("gowalla: seconds of preparation", ["columns", "totals"], [seconds])
    for statistic in (Triangles(), TwoTriangles()):
        for mechanism in ("smooth_sensitivity", "ladder"):
            for epsilon in (0.1, 1.0):
                label = f"gowalla {statistic.name} {mechanism} ε={epsilon}"
                answered(result, setting, label, statistic, mechanism, epsilon, records, dataset,
                         executor)  # fmt: skip


def prepared(
    data: Path, executor: ThreadExecutor
) -> tuple[GraphRecords, Dataset, list[tuple[float, float]]]:
    sources, targets, nodes = read_edge_list(data, "gowalla")
    rows = compressed_rows(sources, targets, nodes)
    first, columns = clocked(lambda: prepare_graph(*rows, executor))
    second, totals = clocked(lambda: prepare_totals(*rows, columns["co_degree"], executor))
    dataset = Dataset("gowalla", NeighbouringRelation.EDGE, GraphDomain(nodes, nodes - 1))
    return GraphRecords(*rows, columns, totals), dataset, [number(first), number(second)]


def medians(result: Result, setting: Setting, executor: ThreadExecutor) -> None:
    rows = setting.size(10_000_000, 1_000_000)
    numbers = np.random.default_rng(0).lognormal(11, 0.6, rows).clip(0, 1e6)
    table = TableRecords({"x": np.zeros(rows, np.uint8)}, {"x": numbers}, {"x": np.sort(numbers)})
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        for upper in (1e6, 1e6 + 0.5):
            attribute = NumericAttribute("x", 0.0, upper, (0.0, upper))
            of = Dataset("x", relation, TableDomain((attribute,), rows=rows, max_rows=rows))
            for mechanism in ("exponential", "smooth_sensitivity"):
                label = f"median {mechanism} {relation} [0, {upper:.8g}]"
                answered(result, setting, label, Median("x"), mechanism, 1.0, table, of, executor)


def answered(
    result: Result,
    setting: Setting,
    label: str,
    statistic: Statistic,
    mechanism: str,
    epsilon: float,
    records: Records,
    dataset: Dataset,
    executor: ThreadExecutor,
) -> None:
    """The median time of an answer."""
    delta = ATTO // 10**6 if mechanism == "smooth_sensitivity" else 0
    loss = PrivacyLoss(round(epsilon * NANO), delta)
    release = MECHANISMS[mechanism].release
    work = partial(release, statistic, records, dataset, loss, SystemRandomness(), executor)
    rounds = Rounds.of("seconds", {label: wall(work)}, setting.times(5), warm=0)
    result.measure(f"answer: {label}", rounds.median(label), "s")
    result.kept[label] = rounds.values[label]


BENCHES = (
    Bench(
        "statistics_speed",
        "How fast are statistics prepared and answered?",
        run,
        180.0,
        ("NetworKit's edge score", "the same search without its early end"),
        (
            Bar("*: NetworKit / supports", least=2),
            Bar("*: pairs to the end / open maximum", least=10),
            Bar("answer: gowalla *", most=0.5),
            Bar("answer: median *", most=0.2),
        ),
        edges_of(*GRAPHS),
    ),
)
