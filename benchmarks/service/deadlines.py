"""Whether deadlines are worth waiting for, and nobody waits for the work of another.

``timing.deadlines`` asks every kind with its default options of real graphs and tables. A service
whose clock is off shows the work, with a request around it; one with default settings states the
deadline in its quote. ``timing.throughput`` presses light queries through 64 connections, with the
clock and without, and lets one analyst ask light and heavy queries beside another's 256 heavy ones.
"""

import asyncio
import json
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.bench import Bar, Bench, Setting, edges_of, rows_of
from benchmarks.data.graphs import read_nodes
from benchmarks.result import Cell, Result
from benchmarks.service.http import TABLE, body
from benchmarks.service.pressure import post, press
from benchmarks.service.real_graphs import register
from benchmarks.service.session import AMPLE, Session

TICK = 0.025
GZIP = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
GRAPHS, TABLES = ("github", "enron"), ("adult", "adult_full")
BETWEENNESS = [{"name": "egocentric_betweenness"}]
#: By a name: queries that state nothing that has a default.
OF_GRAPHS: dict[str, dict[str, Any]] = {
    "selection": {"kind": "selection", "utilities": BETWEENNESS},
    "top_k": {"kind": "top_k", "k": 10, "utilities": BETWEENNESS},
    "pareto": {
        "kind": "selection",
        "utilities": [{"name": "degree"}, *BETWEENNESS],
        "objective": "pareto",
    },
    **{name: {"kind": "statistic", "statistic": name} for name in ("edges", "triangles")},
    "stars": {"kind": "statistic", "statistic": "stars", "k": 3},
}
OF_TABLES: dict[str, dict[str, Any]] = {
    "count": {"kind": "statistic", "statistic": "count"},
    "mean": {"kind": "statistic", "statistic": "mean", "attribute": "age"},
    "median": {"kind": "statistic", "statistic": "median", "attribute": "age"},
    "table": {"kind": "table", "by": ["sex", "income"]},
    "id3": {"kind": "tree", "algorithm": "id3"},
    "evolutionary": {"kind": "tree", "algorithm": "evolutionary", "positive_class": ">50K"},
    "forest": {"kind": "tree", "algorithm": "forest"},
    "naive_bayes": {"kind": "tree", "algorithm": "naive_bayes"},
    "distance": {"kind": "distance", "target": "occupation"},
    "clustering": {"kind": "clustering", "clusters": 3},
}
#: Connections that press light queries, and heavy queries of one analyst.
CONNECTIONS, HEAVY = 64, 256


def register_table(session: Session, folder: Path, name: str) -> None:
    """Register a real table by its published schema, with room for a few more rows."""
    schema = json.loads((folder / f"{name}.schema.json").read_text())
    missing, attributes = schema.get("missing_value"), []
    for described in schema["attributes"]:
        one = {"name": described["name"], "kind": described["kind"]}
        if described["kind"] == "categorical":
            one["values"] = [value for value in described["domain"] if value != missing]
            if missing in described["domain"]:
                one["missing"] = missing
        else:
            one |= {"bounds": described["domain"], "bins": 5}
        attributes.append(one)
    session.describe(
        {
            "name": name,
            "kind": "table",
            "neighbouring": "add_remove",
            "max_rows": 60_000,
            "class_attribute": schema["class_attribute"],
            "attributes": attributes,
        }
    )


def filled(session: Session, setting: Setting) -> None:
    """All records that are asked about."""
    for name in GRAPHS:
        register(session, name, read_nodes(setting.data, name))
        session.upload(name, (setting.data / f"{name}.edges.csv.gz").read_bytes(), GZIP)
    for name in TABLES:
        register_table(session, setting.data, name)
        session.upload(name, (setting.data / f"{name}.csv.gz").read_bytes(), GZIP)


def run_deadlines(result: Result, setting: Setting) -> None:
    of = dict.fromkeys(GRAPHS, OF_GRAPHS) | dict.fromkeys(TABLES, OF_TABLES)
    rows: list[list[Cell]] = []
    with ExitStack() as stack:
        free = stack.enter_context(Session.opened(PURSE_RELEASE_INTERVAL="0"))
        usual = stack.enter_context(Session.opened())
        for session in (free, usual):
            filled(session, setting)
        for dataset, queries in of.items():
            for name, query in queries.items():
                sent = {"dataset": dataset, "epsilon": "1", "query": query}
                seconds = usual.send("analyst", "POST", "/v1/quotes", json=sent)["seconds"]
                work = median(answered(free, sent) for _ in range(setting.times(7)))
                rows.append([dataset, name, work, seconds, (seconds - 2 * TICK) / work])
                result.measure(
                    f"{dataset}, {name}: (L − 2 ticks) / work", (seconds - 2 * TICK) / work, "×"
                )
    columns = ["records", "query", "median work in s", "deadline in s", "(L − 2 ticks) / work"]
    result.table("default options", columns, rows)


def answered(session: Session, sent: dict[str, Any]) -> float:
    """The seconds until the answer is here."""
    started = time.perf_counter()
    wait = {"Prefer": "wait=300"}
    session.send("analyst", "POST", "/v1/queries", json=sent, headers=wait)
    return time.perf_counter() - started


def run_throughput(result: Result, setting: Setting) -> None:
    seconds = 2.0 if setting.quick else 10.0
    rates = {}
    for name, settings in (("without the clock", {"PURSE_RELEASE_INTERVAL": "0"}), ("usual", {})):
        with Session.opened(PURSE_RATE_LIMIT="", **settings) as session:
            session.describe(TABLE)
            session.upload("small", b"sex\nMale\nFemale\n")
            rates[name] = light_rate(session, seconds)
            result.measure(f"light queries, {name}", rates[name], "per second")
    result.measure(
        "light queries, usual / without the clock", rates["usual"] / rates["without the clock"], "×"
    )
    with Session.opened() as session:
        beside(result, session, setting)


def light_rate(session: Session, seconds: float) -> float:
    """Light queries per second through all connections."""
    key = {"Authorization": f"Bearer {session.keys['analyst']}"}
    request = post("/v1/queries", body("0.001"), key)
    port = session.service.port
    press(port, lambda: request, connections=CONNECTIONS, seconds=1.0)
    replies = press(port, lambda: request, connections=CONNECTIONS, seconds=seconds)
    if set(replies.statuses) != {201}:
        raise AssertionError(f"201 expected: {replies.statuses}")
    return replies.rate


def beside(result: Result, session: Session, setting: Setting) -> None:
    """Bob's light and heavy queries, alone and beside 256 heavy ones of another analyst."""
    register(session, "github", read_nodes(setting.data, "github"))
    session.upload("github", (setting.data / "github.edges.csv.gz").read_bytes(), GZIP)
    bob = session.send("admin", "POST", "/v1/users", json={"name": "bob", "roles": ["analyst"]})
    session.keys["bob"] = bob["key"]
    session.send("owner", "PUT", "/v1/datasets/github/budgets/bob", json=AMPLE)
    light = {"kind": "statistic", "statistic": "edges"}
    heavy = {**OF_GRAPHS["pareto"], "passes": 16}

    def seconds_of(query: dict[str, Any], count: int) -> float:
        return median(_seconds(session, "bob", query) for _ in range(count))

    idle = seconds_of(light, 20), seconds_of(heavy, 3)
    asyncio.run(_flood(session, heavy, setting.size(HEAVY, 16)))
    busy = seconds_of(light, 20), seconds_of(heavy, 3)
    result.measure("light, beside heavy / idle", busy[0] / idle[0], "×")
    result.measure("heavy, beside heavy − idle", busy[1] - idle[1], "s")
    rows: list[list[Cell]] = [["light", idle[0], busy[0]], ["heavy", idle[1], busy[1]]]
    result.table("Bob's queries, seconds", ["query", "idle", "beside"], rows)


def _seconds(session: Session, who: str, query: dict[str, Any]) -> float:
    sent = {"dataset": "github", "epsilon": "0.1", "query": query}
    started = time.perf_counter()
    session.send(who, "POST", "/v1/queries", json=sent, headers={"Prefer": "wait=300"})
    return time.perf_counter() - started


async def _flood(session: Session, query: dict[str, Any], count: int) -> None:
    """So many queries of the other analyst, which wait for slots when this returns."""
    sent = {"dataset": "github", "epsilon": "0.1", "query": query}
    headers = {
        "Authorization": f"Bearer {session.keys['analyst']}",
        "Prefer": "respond-async",
    }
    async with httpx.AsyncClient(base_url=session.service.url, timeout=120) as http:
        calls = [http.post("/v1/queries", json=sent, headers=headers) for _ in range(count)]
        for reply in await asyncio.gather(*calls):
            if reply.status_code != 202:
                raise AssertionError(reply.text)


BENCHES = (
    Bench(
        "timing.deadlines",
        "Are the deadlines of default options worth waiting for?",
        run_deadlines,
        300.0,
        ("a service whose clock is off",),
        (Bar("*: (L − 2 ticks) / work", most=4),),
        (*edges_of(*GRAPHS), *rows_of(*TABLES)),
    ),
    Bench(
        "timing.throughput",
        "How many light queries are answered, and who waits for another's heavy ones?",
        run_throughput,
        120.0,
        ("a service whose clock is off", "an idle service"),
        (
            Bar("light queries, usual / without the clock", least=0.5),
            Bar("light, beside heavy / idle", most=2),
            Bar("heavy, beside heavy − idle", most=3),
        ),
        edges_of("github"),
    ),
)
