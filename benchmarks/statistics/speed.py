"""How fast statistics answer after preparation, and how fast they are prepared.

Triangles and two-triangles of the whole of gowalla by smooth sensitivity and by the ladder, and the
median of 10⁷ numbers, each through the mechanism as a query runs it. Supports of all edges against
the edge score of NetworKit, either from its own graph in memory with its edges indexed and at
whichever of one thread and all of them serves it best; the maximum over pairs without an edge
against the same search without its early end.
"""

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import EdgeList, graph_dataset, graph_records, read_edge_list
from benchmarks.data.tables import number_dataset, number_records
from benchmarks.result import Result
from benchmarks.rounds import Rounds, clocked, wall
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.pairs_of_nodes import open_maximum
from mechanisms.kernels.graphs.ranks import ranked
from mechanisms.kernels.graphs.supports import edge_supports
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.executor import Executor
from mechanisms.model.records import Records
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.quantile import Median
from mechanisms.statistics.statistic import Statistic
from mechanisms.statistics.triangles import Triangles, TwoTriangles

GRAPHS = ("enron", "github", "dblp", "gowalla")
WORKERS = 2
#: NetworKit's OpenMP threads spin for milliseconds after their work is done, on the core that the
#: next run needs. So every timed run, of either side, starts after this many seconds of rest.
REST = 0.02


def run(result: Result, setting: Setting) -> None:
    warm()
    executor, one_thread = ThreadExecutor(WORKERS), ThreadExecutor(1)
    for name in GRAPHS[:1] if setting.quick else GRAPHS:
        supports(result, setting, name, executor, one_thread)

    def answer(
        label: str, statistic: Statistic, mechanism: str, epsilon: float, *data: Records | Dataset
    ) -> None:
        """Measure the median time of an answer from these records of this dataset."""
        delta = ATTO // 10**6 if mechanism == "smooth_sensitivity" else 0
        loss = PrivacyLoss(round(epsilon * NANO), delta)
        release: Any = MECHANISMS[mechanism].release
        work = partial(release, statistic, *data, loss, SystemRandomness(), executor)
        rounds = Rounds.of("seconds", {label: wall(work)}, setting.times(5), warm=0)
        result.measure(f"answer: {label}", rounds.median(label), "s")
        result.stored[label] = rounds.values[label]

    if not setting.quick:
        edges = read_edge_list(setting.data, "gowalla")
        seconds, records = clocked(lambda: graph_records(edges, executor, totals=True))
        result.table("gowalla", ["seconds of preparation"], [[seconds]])
        dataset = graph_dataset("gowalla", edges[2])
        how = (Triangles(), TwoTriangles()), ("smooth_sensitivity", "ladder"), (0.1, 1.0)
        for statistic, mechanism, epsilon in product(*how):
            label = f"gowalla {statistic.name} {mechanism} ε={epsilon}"
            answer(label, statistic, mechanism, epsilon, records, dataset)
    rows = setting.size(10_000_000, 1_000_000)
    numbers = number_records(np.random.default_rng(0).lognormal(11, 0.6, rows).clip(0, 1e6))
    relations = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
    for relation, upper in product(relations, (1e6, 1e6 + 0.5)):
        public = number_dataset(0.0, upper, rows, rows, relation)
        for mechanism in ("exponential", "smooth_sensitivity"):
            label = f"median {mechanism} {relation} [0, {upper:.8g}]"
            answer(label, Median("x"), mechanism, 1.0, numbers, public)
    executor.close()
    one_thread.close()


def supports(
    result: Result, setting: Setting, name: str, executor: Executor, one_thread: Executor
) -> None:
    edges = read_edge_list(setting.data, name)
    graph = ranked(*compressed_rows(*edges))
    theirs = indexed(edges)
    works = {
        "supports, 1 thread": lambda: edge_supports(graph, one_thread),
        "supports, threads": lambda: edge_supports(graph, executor),
        "NetworKit, 1 thread": lambda: edge_score(theirs, 1),
        "NetworKit, threads": lambda: edge_score(theirs, WORKERS),
        "open maximum": lambda: open_maximum(graph),
        "open maximum, to the end": lambda: open_maximum(graph, pruned=False),
    }
    ways = {what: wall(work, REST) for what, work in works.items()}
    rounds = Rounds.of("seconds", ways, setting.times(5)).report(result, name)
    scores = np.array(edge_score(theirs, 1).scores())
    if int(scores.sum()) != int(edge_supports(graph, executor).sum(dtype=np.int64)):
        raise AssertionError("NetworKit counts other triangles")
    ours, rival = (
        min((f"{who}, 1 thread", f"{who}, threads"), key=rounds.median)
        for who in ("supports", "NetworKit")
    )
    result.measure(f"{name}: NetworKit / supports", rounds.ratio(rival, ours), "×")
    ratio = rounds.ratio("open maximum, to the end", "open maximum")
    result.measure(f"{name}: pairs to the end / open maximum", ratio, "×")


def indexed(edges: EdgeList) -> Any:
    """The graph as NetworKit holds it."""
    from networkit.graph import Graph

    graph = Graph(edges[2])
    for a, b in zip(edges[0].tolist(), edges[1].tolist(), strict=True):
        graph.addEdge(a, b)
    graph.indexEdges()
    return graph


def edge_score(graph: Any, threads: int) -> Any:
    """NetworKit's number of triangles on every edge: its ``scores()``, not yet made a list."""
    from networkit import setNumberOfThreads
    from networkit.sparsification import TriangleEdgeScore

    setNumberOfThreads(threads)
    return TriangleEdgeScore(graph).run()


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
