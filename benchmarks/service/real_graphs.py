"""What the real service takes for real graphs over HTTP: time to ready, time of a query, memory.

Services over folders of their own get each graph three times and are asked for ten nodes by every
sensitivity. Release instants are off, so that the work itself shows. Beside the client's time,
around the whole request, stands that of ``select_top`` called in this process on the same arrays,
in the same rounds. The client's is held to the bars: it is the longer one.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import graph_dataset, read_nodes
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way, memory, wall
from benchmarks.selections.cases import BETWEENNESS, UTILITY
from benchmarks.service.session import CSV, Session
from mechanisms.model.candidates import AllNodes
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from storage.records.preparation import open_records

LOSS = PrivacyLoss.parse("1")
K, UPLOADS = 10, 3


#: Public bounds on the node degrees of the graphs. They are round numbers that no degree exceeds.
GRAPHS = {"github": 10_000, "enron": 2_000, "dblp": 500, "gowalla": 20_000}


def run(result: Result, setting: Setting) -> None:
    with Session.opened(PURSE_RELEASE_INTERVAL="0") as session:
        result.measure("idle, peak memory", memory("VmHWM", session.service.pid), "MB")
    for name in list(GRAPHS)[: setting.size(len(GRAPHS), 1)]:
        measure(result, setting, name)


def measure(result: Result, setting: Setting, name: str) -> None:
    """One graph in a service of its own: uploads, queries by every sensitivity, memory."""
    nodes = read_nodes(setting.data, name)
    content = (setting.data / f"{name}.edges.csv.gz").read_bytes()
    with Session.opened(PURSE_RELEASE_INTERVAL="0") as session:
        register(session, name, nodes)
        headers = CSV | {"Content-Encoding": "gzip"}
        times = [session.upload(name, content, headers) for _ in range(UPLOADS)]
        first = top_k(session, name, Sensitivity.SHIFTED)
        result.table(f"{name}: seconds", ["first upload to ready", "median", "very first query"],
                     [[times[0], median(times), first]])  # fmt: skip
        result.measure(f"{name}, upload to ready", max(times[0], median(times)), "s")
        [folder] = (session.service.data / "datasets").glob(f"*/{UPLOADS}")
        ways: dict[str, Way] = {}
        for s in Sensitivity:
            ways[f"{s}: client"] = partial(top_k, session, name, s)
            ways[f"{s}: select_top"] = wall(mechanism(name, len(nodes), folder, s))
        rounds = Rounds.of("seconds", ways, setting.times(11)).report(result, f"{name}, top {K}")
        for s in Sensitivity:
            milliseconds = rounds.median(f"{s}: client") * 1e3
            result.measure(f"{name}, top {K}, {s}: client", milliseconds, "ms")
        result.measure(f"{name}, peak memory", memory("VmHWM", session.service.pid), "MB")


def register(session: Session, name: str, nodes: list[int]) -> None:
    """Nodes are named in three ways: the numbers below a count, a list inside the registration,
    and a list of its own for what is too long for one."""
    public = {
        "name": name,
        "kind": "graph",
        "neighbouring": "edge",
        "max_degree": GRAPHS[name],
    }
    if name == "dblp":
        session.describe(public)
        content = "".join(f"{node}\n" for node in nodes).encode()
        session.send("owner", "PUT", f"/v1/datasets/{name}/nodes", content=content, headers=CSV)
        return
    count = len(nodes)
    ids = {"count": count} if nodes == list(range(count)) else {"ids": nodes}
    session.describe(public | {"nodes": ids})


def top_k(session: Session, name: str, sensitivity: Sensitivity) -> float:
    """Ask for k nodes by egocentric betweenness; the seconds until the answer is here."""
    query = {"kind": "top_k", "k": K, "utilities": [{"name": UTILITY}], "sensitivity": sensitivity}
    body = {"dataset": name, "epsilon": "1", "query": query}
    started = time.perf_counter()
    reply = session.send("analyst", "POST", "/v1/queries", json=body)
    seconds = time.perf_counter() - started
    if len(set(reply["answer"]["selected"])) != K:
        raise RuntimeError(f"not {K} different nodes of {name}")
    return seconds


def mechanism(
    name: str, nodes: int, folder: Path, sensitivity: Sensitivity
) -> Callable[[], object]:
    """A query's work without the service: open the prepared arrays and select."""
    dataset = graph_dataset(name, nodes, GRAPHS[name])
    selector, executor = SELECTORS["permute_and_flip"], ThreadExecutor(os.cpu_count() or 1)
    return lambda: select_top(
        open_records(folder, dataset.domain), dataset, AllNodes(), BETWEENNESS, sensitivity,
        selector, K, "peeled", LOSS, SystemRandomness(), executor,
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
            Bar("github, upload to ready", most=3),
            Bar("dblp, peak memory", most=600),
            Bar(f"github, top {K}, *", most=80),
            Bar(f"dblp, top {K}, *", most=500),
        ),
        edges_of(*GRAPHS),
    ),
)
