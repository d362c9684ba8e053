"""What the real service takes over HTTP: time to ready, time of a query, memory.

Starts ``app.cli serve`` over folders of its own, uploads real graphs, asks for ten nodes by every
sensitivity, and holds the medians against what is expected; status 1 when one fails. Release
instants are off, so that the work itself shows. Two times of a query are printed: the client's,
around the whole request, and that of ``select_top`` called in this process on the same arrays.
The client's decides: it is the longer one.

    python -m benchmarks.service --data DIR [--queries N] [--graphs NAME ...]
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from benchmarks.graphs import data_option, read_nodes
from benchmarks.session import Session
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import OBJECTIVES, Term
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES
from storage.records.preparation import open_records

RESULTS = Path(__file__).parent / "results"
SETTINGS: dict[str, Any] = {"PURSE_RELEASE_INTERVAL": "0"}
LOSS = PrivacyLoss.parse("1")
K = 10


@dataclass(frozen=True)
class Graph:
    """A graph, its public bound, and the most that it may take: seconds, milliseconds."""

    max_degree: int
    ready_s: float | None = None
    query_ms: float | None = None


GRAPHS = {
    "github": Graph(10_000, ready_s=3, query_ms=80),
    "enron": Graph(2_000),
    "dblp": Graph(500, query_ms=500),
    "gowalla": Graph(20_000),
}
IDLE_MB, DBLP_MB, DRAW_S = 300, 600, 0.3


@dataclass
class Table:
    """The measurements, printed as they come."""

    rows: list[dict[str, str | float | bool | None]] = field(default_factory=list)

    def add(self, what: str, value: float, unit: str, most: float | None = None) -> None:
        holds = None if most is None else value <= most
        self.rows.append({"what": what, "value": value, "unit": unit, "most": most, "holds": holds})
        verdict = "" if holds is None else "holds" if holds else "FAILS"
        expected = "" if most is None else f"≤ {most:g}"
        print(f"{what:58}{value:10.3f} {unit:4}{expected:>8}  {verdict}", flush=True)

    def holds(self) -> bool:
        return all(row["holds"] is not False for row in self.rows)


def idle(table: Table) -> None:
    """Memory of a service that was started and asked for nothing but its readiness."""
    with Session.opened(**SETTINGS) as session:
        table.add("idle, resident", session.memory("VmRSS"), "MB", IDLE_MB)
        table.add("idle, peak", session.memory("VmHWM"), "MB", IDLE_MB)


def graph(name: str, options: Namespace, table: Table) -> None:
    """One graph in a service of its own: upload twice, query by every sensitivity, memory."""
    public = GRAPHS[name]
    nodes = read_nodes(options.data, name)
    with Session.opened(**SETTINGS) as session:
        # Three ways to name nodes: the numbers below a count, a list inside the registration, and
        # a list of its own for what is too long for one.
        if name == "dblp":
            session.register(name, None, public.max_degree)
            session.upload_nodes(name, nodes)
        else:
            count = len(nodes)
            numbered = nodes == list(range(count))
            session.register(
                name, {"count": count} if numbered else {"ids": nodes}, public.max_degree
            )
        file = options.data / f"{name}.edges.csv.gz"
        times = [session.upload(name, file) for _ in range(options.uploads)]
        table.add(f"{name}, first upload to ready", times[0], "s", public.ready_s)
        table.add(f"{name}, upload to ready, median of {len(times)}", median(times), "s",
                  public.ready_s)  # fmt: skip
        first = session.top_k(name, K, "shifted") * 1e3
        table.add(f"{name}, very first query (loads kernels)", first, "ms")
        for sensitivity in Sensitivity:
            asked = timed(partial(session.top_k, name, K, sensitivity), options.queries)
            table.add(f"{name}, top {K}, {sensitivity}: client", asked * 1e3, "ms", public.query_ms)
            folder = version_folder(session.service.data, options.uploads)
            inside = timed(mechanism(name, len(nodes), folder, sensitivity), options.queries)
            table.add(f"{name}, top {K}, {sensitivity}: select_top", inside * 1e3, "ms",
                      public.query_ms)  # fmt: skip
        peak = session.memory("VmHWM")
        table.add(f"{name}, peak memory", peak, "MB", DBLP_MB if name == "dblp" else None)


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


def version_folder(data: Path, version: int) -> Path:
    """The prepared arrays of the only dataset's latest version."""
    [folder] = (data / "datasets").glob(f"*/{version}")
    return folder


def draw(options: Namespace, table: Table) -> None:
    """One draw over a million candidates."""
    scores = np.zeros(10**6, dtype=np.int64)
    executor, randomness = ThreadExecutor(os.cpu_count() or 1), SystemRandomness()
    for name, selector in SELECTORS.items():
        work = partial(selector.top, scores, score_bits(1), LOSS, 1, "peeled", randomness, executor)
        seconds = timed(work, options.queries)
        table.add(f"one draw over 10⁶ candidates, {name}", seconds, "s", DRAW_S)


def timed(work: Callable[[], object], times: int) -> float:
    """The median seconds of ``times`` runs; one before them is not counted."""
    series = []
    for _ in range(times + 1):
        started = perf_counter()
        work()
        series.append(perf_counter() - started)
    return median(series[1:])


def main() -> int:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    data_option(parser)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--queries", type=int, default=11, help="of every kind")
    parser.add_argument("--uploads", type=int, default=3, help="of every graph")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load before the start {load:.1f}\n")
    table = Table()
    idle(table)
    for name in options.graphs:
        graph(name, options, table)
    draw(options, table)
    RESULTS.mkdir(exist_ok=True)
    written = {"processors": os.cpu_count(), "load": [load, os.getloadavg()[0]]}
    (RESULTS / "service.json").write_text(json.dumps({**written, "rows": table.rows}, indent=1))
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")
    return 0 if table.holds() else 1


if __name__ == "__main__":
    sys.exit(main())
