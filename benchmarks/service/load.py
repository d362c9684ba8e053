"""How queries under load delay one another, under the default settings of the service.

Three things are measured: how many light queries over many connections and heavy ones over a few
are answered in a second, compared with a service without deadlines and with another checkout; how
long one analyst waits while another asks for heavy work; and whether any deadline is missed on the
slowest records known while all slots are busy.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from statistics import median
from threading import Event
from typing import Any

import httpx

from benchmarks.bench import BEFORE, Bar, Bench, Setting, edges_of
from benchmarks.data.graphs import read_nodes
from benchmarks.result import Cell, Result
from benchmarks.rounds import Rounds, Way
from benchmarks.service import black_boxes
from benchmarks.service.deadlines import TOP, TOP_PARETO
from benchmarks.service.http import TABLE, body
from benchmarks.service.pressure import post, press
from benchmarks.service.real_graphs import register
from benchmarks.service.session import CSV, Session

LIGHT, HEAVY = 64, 8
#: The numbers of processes with which services are compared.
PROCESSES = (1, 2)
#: The service counts requests, so this cost is measured, but its rate limit is too high to be
#: reached.
UNLIMITED: dict[str, Any] = {"PURSE_RATE_LIMIT": "100000000/minute"}
NO_DEADLINES: dict[str, Any] = {"PURSE_RELEASE_INTERVAL": "0"}
#: The number of heavy queries that the analyst Ana sends together, and the seconds to the deadline
#: of each.
ANA, LENGTH = 256, 1.0
#: The numbers of light and of heavy queries that the analyst Bob sends while those of Ana run.
BOB, BOB_HEAVY = 200, 5
#: The number of queries on the slowest records known. Those with a deadline of at most ``SHORT``
#: seconds are counted apart and have their own clients. There are more clients than slots, so that
#: some queries always wait.
QUERIES, SHORT = 100_000, 0.05
SHORT_CLIENTS, LONG_CLIENTS = 24, 2
TOKEN = "the operator's own"


def request(session: Session, body: bytes) -> bytes:
    """A query of the analyst, who waits for the answer."""
    bearer = {"Authorization": f"Bearer {session.keys['analyst']}"}
    return post("/v1/queries", body, bearer | {"Prefer": "wait=300"})


def rate(session: Session, sent: bytes, connections: int, seconds: float) -> float:
    """Answers per second."""
    port = session.service.port
    replies = press(port, lambda: sent, connections=connections, seconds=seconds)
    if set(replies.statuses) != {201}:
        raise AssertionError(f"201 expected: {replies.statuses}")
    return replies.rate


def github(session: Session, setting: Setting) -> None:
    register(session, "github", read_nodes(setting.data, "github"))
    content = (setting.data / "github.edges.csv.gz").read_bytes()
    session.upload("github", content, CSV | {"Content-Encoding": "gzip"})


def of_github(query: dict[str, Any], epsilon: str = "0.1") -> bytes:
    return json.dumps({"dataset": "github", "epsilon": epsilon, "query": query}).encode()


def run_rates(result: Result, setting: Setting) -> None:
    seconds, rounds = (1.0, 2) if setting.quick else (3.0, 5)
    with ExitStack() as stack:
        sessions = {
            "deadlines": stack.enter_context(Session.opened(**UNLIMITED)),
            "no deadlines": stack.enter_context(Session.opened(**UNLIMITED, **NO_DEADLINES)),
        }
        if setting.before:
            opened = Session.opened(setting.before, **UNLIMITED)
            sessions["before"] = stack.enter_context(opened)
        for session in sessions.values():
            session.describe(TABLE)
            session.upload("small", b"sex\nMale\nFemale\n")
            github(session, setting)
        for what, sent, connections in (
            (f"light, {LIGHT} clients", body("0.001"), LIGHT),
            (f"top 10 by betweenness, {HEAVY} clients", of_github(TOP), HEAVY),
        ):
            ways = {
                name: partial(rate, one, request(one, sent), connections, seconds)
                for name, one in sessions.items()
            }
            measured = Rounds.of("per second", ways, rounds).report(result, what)
            for other in list(sessions)[1:]:
                result.measure(f"{what} / {other}", measured.ratio("deadlines", other), "×")


@contextmanager
def ana(session: Session, query: dict[str, Any]) -> Iterator[None]:
    """Ana has asked for all her queries; what has not begun at the end is cancelled."""
    reply = session.send("admin", "POST", "/v1/users", json={"name": "ana", "roles": ["analyst"]})
    session.keys["ana"] = reply["key"]
    cap = {"epsilon": "10000", "delta": "0"}
    session.send("owner", "PUT", "/v1/datasets/github/budgets/ana", json=cap)
    sent = of_github(query)
    ids = [
        session.send(
            "ana", "POST", "/v1/queries", content=sent,
            headers={"Prefer": "respond-async", "Content-Type": "application/json"},
        )["id"]
        for _ in range(ANA)
    ]  # fmt: skip
    yield
    running = session.send("ana", "GET", f"/v1/queries/{ids[-1]}")["status"]
    if running != "running":
        raise AssertionError("all queries of Ana were over before those of Bob")
    # A normal stop would first answer all remaining queries of Ana, so the service is killed.
    session.service.kill()


def bob(session: Session, sent: bytes, count: int) -> list[float]:
    """The seconds that each of his queries takes, one after another."""
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        headers = {"Prefer": "wait=300", "Content-Type": "application/json"}
        session.send("analyst", "POST", "/v1/queries", content=sent, headers=headers)
        seconds.append(time.perf_counter() - started)
    return seconds


def heavy(session: Session) -> dict[str, Any]:
    """A Pareto selection of as few nodes as make its deadline ``LENGTH``."""
    for k in range(5, 50):
        query = {**TOP_PARETO, "k": k, "rescore": True, "passes": 64}
        quoted = session.send(
            "analyst", "POST", "/v1/quotes", content=of_github(query),
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        if quoted["seconds"] >= LENGTH:
            return query
    raise AssertionError(f"no query takes {LENGTH:g} s")


def run_beside(result: Result, setting: Setting) -> None:
    count, few = setting.size(BOB, 10), setting.size(BOB_HEAVY, 2)
    with Session.opened(**UNLIMITED) as session:
        session.describe(TABLE)
        session.upload("small", b"sex\nMale\nFemale\n")
        github(session, setting)
        query = heavy(session)
        queries = {"light": (body("0.001"), count), "heavy": (of_github(query), few)}
        idle = {name: bob(session, *one) for name, one in queries.items()}
        with ana(session, query):
            beside = {name: bob(session, *one) for name, one in queries.items()}
    rows: list[list[Cell]] = [
        [name, median(idle[name]), median(beside[name]), max(beside[name])] for name in queries
    ]
    columns = ["query of Bob", "alone, s", "beside Ana, s", "longest beside Ana, s"]
    result.table(f"Bob beside {ANA} queries of Ana", columns, rows)
    ratio = median(beside["light"]) / median(idle["light"])
    result.measure("light, beside Ana / alone", ratio, "×")
    later = median(beside["heavy"]) - median(idle["heavy"])
    result.measure("heavy, beside Ana − alone", later, "s")


def run_processes(result: Result, setting: Setting) -> None:
    seconds, rounds = (1.0, 2) if setting.quick else (3.0, 5)
    what = f"light, {LIGHT} clients"
    with ExitStack() as stack:
        ways: dict[str, Way] = {}
        for number in PROCESSES:
            settings = UNLIMITED | {"PURSE_PROCESSES": str(number)}
            session = stack.enter_context(Session.opened(**settings))
            session.describe(TABLE)
            session.upload("small", b"sex\nMale\nFemale\n")
            github(session, setting)
            short, long = (request(session, of) for of in (body("0.001"), of_github(TOP_PARETO)))
            for sent in (short, long):
                ready(session, sent)
            light = partial(rate, session, short, LIGHT, seconds)
            ways[f"{what}, {number}"] = light
            ways[f"{what} beside {HEAVY} heavy ones, {number}"] = partial(
                beside, session, long, light, seconds
            )
        measured = Rounds.of("per second", ways, rounds).report(result, "by processes")
    for way in (what, f"{what} beside {HEAVY} heavy ones"):
        ratio = measured.ratio(*(f"{way}, {number}" for number in reversed(PROCESSES)))
        result.measure(f"{way}: two processes / one", ratio, "×")
    for number in PROCESSES:
        ratio = measured.ratio(f"{what} beside {HEAVY} heavy ones, {number}", f"{what}, {number}")
        result.measure(f"processes {number}: beside heavy ones / alone", ratio, "×")


def ready(session: Session, sent: bytes) -> None:
    """Wait until every process has opened the records: before, it refuses free of charge."""
    answered = 0
    while answered < 20:
        # Each call makes a new connection, so that all processes of the service get requests in
        # turn.
        replies = press(session.service.port, lambda: sent, connections=1, seconds=0)
        answered = answered + 1 if set(replies.statuses) == {201} else 0


def beside(session: Session, sent: bytes, light: Way, seconds: float) -> float:
    """The rate of light queries while as many clients ask heavy ones all the time."""
    with ThreadPoolExecutor(1) as pool:
        heavy = pool.submit(rate, session, sent, HEAVY, seconds)
        measured = light()
        heavy.result()
    return measured


def counted(session: Session, gauge: str) -> int:
    """What a gauge of the service shows now."""
    metrics = httpx.get(
        f"{session.service.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    (count,) = re.findall(rf"^privypurse_{gauge} ([\d.]+)$", metrics.text, re.MULTILINE)
    return int(float(count))


def run_misses(result: Result, setting: Setting) -> None:
    queries = setting.size(QUERIES * setting.more, 2000)
    with Session.opened(**UNLIMITED, PURSE_METRICS_TOKEN=TOKEN) as session:
        black_boxes.describe(session)
        lengths: dict[str, float] = {}
        for one in black_boxes.questions():
            quote = session.send("analyst", "POST", "/v1/quotes", json=one.body("y"))
            lengths[one.name] = quote["seconds"]
        bodies = {
            one.name: request(session, json.dumps(one.body("y")).encode())
            for one in black_boxes.questions()
        }
        short = cycle(sent for name, sent in bodies.items() if lengths[name] <= SHORT)
        long = cycle(sent for name, sent in bodies.items() if lengths[name] > SHORT)
        port, counts, over = session.service.port, [0, 0], Event()

        def pressed(kind: int, sent: Iterator[bytes], connections: int) -> None:
            # Lowers the priority of the clients, so that they take only what the service leaves of
            # the processors: real clients have their own. On Linux this concerns the calling thread
            # alone.
            os.nice(19)
            try:
                while not over.is_set():
                    replies = press(port, lambda: next(sent), connections=connections, seconds=5.0)
                    if set(replies.statuses) != {201}:
                        raise AssertionError(f"201 expected: {replies.statuses}")
                    counts[kind] += replies.count
                    if sum(counts) >= queries:
                        break
            finally:
                over.set()  # Ends the other thread as well, even if this one failed.

        with ThreadPoolExecutor(2) as pool:
            both = [
                pool.submit(pressed, 0, short, SHORT_CLIENTS),
                pool.submit(pressed, 1, long, LONG_CLIENTS),
            ]
            for ended in both:
                ended.result()
        result.table("queries on the worst records", ["deadline", "queries"],
                     [[f"up to {SHORT:g} s", counts[0]], ["longer", counts[1]]])  # fmt: skip
        result.measure("missed deadlines", counted(session, "deadlines_missed"))
        # No bound (bar) is set for this count, because it includes queries that started late or
        # were stored late.
        result.measure("queries late for any reason", counted(session, "queries_late"))


BENCHES = (
    Bench(
        "timing.rates",
        "What do deadlines cost many clients at the same time?",
        run_rates,
        150.0,
        ("the service without deadlines", BEFORE),
        (
            Bar(f"light, {LIGHT} clients / no deadlines", least=0.5),
            Bar(f"light, {LIGHT} clients / before", least=2.5, before=True),
            Bar(f"top 10 by betweenness, {HEAVY} clients / before", least=0.6, before=True),
        ),
        files=edges_of("github"),
    ),
    Bench(
        "timing.beside",
        "How long do the queries of one analyst wait for those of another?",
        run_beside,
        60.0,
        bars=(
            Bar("light, beside Ana / alone", most=2),
            Bar("heavy, beside Ana − alone", most=3),
        ),
        files=edges_of("github"),
    ),
    Bench(
        "timing.processes",
        "What do several processes of one service gain for light queries beside heavy ones?",
        run_processes,
        120.0,
        ("one process",),
        (Bar("processes *: beside heavy ones / alone", least=0.5),),
        files=edges_of("github"),
    ),
    Bench(
        "timing.misses",
        "Does any of 100,000 queries miss its deadline while all slots are busy?",
        run_misses,
        2400.0,
        bars=(Bar("missed deadlines", most=0),),
    ),
)
