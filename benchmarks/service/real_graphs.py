"""What the real service takes for real graphs over HTTP: time to ready, time of a query, memory.

Services over folders of their own get each graph three times and are asked for ten nodes by every
sensitivity. Release instants are off, so that the work itself shows. Beside the client's time,
around the whole request, stands that of ``select_top`` called in this process on the same arrays,
in the same rounds. The client's is held to the bars: it is the longer one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import read_nodes
from benchmarks.result import Result
from benchmarks.rounds import Rounds, number, wall
from benchmarks.service.session import Session
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import OBJECTIVES, Term
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES
from storage.records.preparation import open_records

LOSS = PrivacyLoss.parse("1")
K, UPLOADS = 10, 3


@dataclass(frozen=True)
class Graph:
    """A graph's public bound, and the most that it may take: seconds, milliseconds, MB."""

    max_degree: int
    ready_s: float | None = None
    query_ms: float | None = None
    peak_mb: float | None = None

    def bars(self, name: str) -> list[Bar]:
        bounds = {
            f"{name}, top {K}, *": self.query_ms,
            f"{name}, upload to ready": self.ready_s,
            f"{name}, peak memory": self.peak_mb,
        }
        return [Bar(value, most=most) for value, most in bounds.items() if most is not None]


GRAPHS = {
    "github": Graph(10_000, ready_s=3, query_ms=80),
    "enron": Graph(2_000),
    "dblp": Graph(500, query_ms=500, peak_mb=600),
    "gowalla": Graph(20_000),
}


def run(setting: Setting) -> Result:
    result = Result()
    with Session.opened(PURSE_RELEASE_INTERVAL="0") as session:
        result.measure("idle, peak memory", session.memory("VmHWM"), "MB")
    for name in list(GRAPHS)[: setting.size(len(GRAPHS), 1)]:
        measured(result, setting, name)
    return result


def measured(result: Result, setting: Setting, name: str) -> None:
    """One graph in a service of its own: uploads, queries by every sensitivity, memory."""
    nodes = read_nodes(setting.data, name)
    with Session.opened(PURSE_RELEASE_INTERVAL="0") as session:
        register(session, name, nodes)
        file = setting.data / f"{name}.edges.csv.gz"
        times = [session.upload(name, file) for _ in range(UPLOADS)]
        first = session.top_k(name, K, "shifted")
        result.table(f"{name}: seconds", ["first upload to ready", "median", "very first query"],
                     [[number(value) for value in (times[0], median(times), first)]])  # fmt: skip
        result.measure(f"{name}, upload to ready", max(times[0], median(times)), "s")
        [folder] = (session.service.data / "datasets").glob(f"*/{UPLOADS}")
        ways = {}
        for s in Sensitivity:
            ways[f"{s}: client"] = partial(session.top_k, name, K, s)
            ways[f"{s}: select_top"] = wall(mechanism(name, len(nodes), folder, s))
        rounds = Rounds.of("seconds", ways, setting.times(11)).report(result, f"{name}, top {K}")
        for s in Sensitivity:
            milliseconds = rounds.median(f"{s}: client") * 1e3
            result.measure(f"{name}, top {K}, {s}: client", milliseconds, "ms")
        result.measure(f"{name}, peak memory", session.memory("VmHWM"), "MB")


def register(session: Session, name: str, nodes: list[int]) -> None:
    """Nodes are named in three ways: the numbers below a count, a list inside the registration,
    and a list of its own for what is too long for one."""
    most = GRAPHS[name].max_degree
    if name == "dblp":
        session.register(name, None, most)
        session.upload_nodes(name, nodes)
        return
    count = len(nodes)
    named = {"count": count} if nodes == list(range(count)) else {"ids": nodes}
    session.register(name, named, most)


def mechanism(
    name: str, nodes: int, folder: Path, sensitivity: Sensitivity
) -> Callable[[], object]:
    """A query's work without the service: open the prepared arrays and select."""
    domain = GraphDomain(nodes, GRAPHS[name].max_degree)
    dataset = Dataset(name, NeighbouringRelation.EDGE, domain)
    objective = OBJECTIVES["single"]([Term(UTILITIES["egocentric_betweenness"])])
    selector, executor = SELECTORS["permute_and_flip"], ThreadExecutor(os.cpu_count() or 1)
    return lambda: select_top(
        open_records(folder, domain), dataset, AllNodes(), objective, sensitivity, selector,
        K, "peeled", LOSS, SystemRandomness(), executor,
    )  # fmt: skip


BENCHES = (
    Bench(
        "real_graphs",
        "How long do uploads and queries of real graphs take, and how much memory?",
        run,
        240.0,
        ("the mechanism alone, without the service",),
        (
            Bar("idle, peak memory", most=300),
            *(bar for name, graph in GRAPHS.items() for bar in graph.bars(name)),
        ),
        edges_of(*GRAPHS),
    ),
)
