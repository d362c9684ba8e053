"""How the work of a paid query grows with the ledger, the people and the datasets: no cliff.

Every size has a database or a service of its own, and the sizes take turns. Of ledgers, the seconds
of this process are divided by the queries that it charges and settles for 32 clients. Of services,
those of the service are divided by the requests; the query is the cheapest there is, release
instants are off, and 32 connections send it for all analysts or datasets in turn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle

from app.demo.service import ROOT
from benchmarks.bench import Bench, Setting
from benchmarks.draws.growth import bars, report, sizes_of
from benchmarks.ledger.accounts import Pair, hot_account, opened
from benchmarks.ledger.clients import fill
from benchmarks.ledger.databases import folder
from benchmarks.result import Result
from benchmarks.rounds import Way, processor
from benchmarks.service.http import CONNECTIONS, SETTINGS, TABLE, Pressure, body
from benchmarks.service.pressure import get, post
from benchmarks.service.processes import SERVE
from benchmarks.service.session import AMPLE, Session
from storage.assurance.verification import verify
from storage.ledger.ledger import Ledger

#: The sizes of ledgers in entries. Each query is charged to three accounts, so it adds three
#: entries.
ENTRIES, ACCOUNTS = (1_000, 10_000, 100_000, 1_000_000), 3
ANALYSTS = DATASETS = (1, 10, 100, 1_000)
CLIENTS = (1, 4, 16, 64, 256)
#: The number of queries that are charged and settled in one measurement.
PAIRS = 2_000
CHARGED, VERIFIED = "a query charged and settled", "verification of all"
QUERY, PAGE = "a paid query", "a page of their list"
#: For each quantity that grows, its kinds of work, each with the largest exponent with which its
#: time may grow.
MOST: Mapping[str, Mapping[str, float]] = {
    "entries": {CHARGED: 0.1, VERIFIED: 1.1},
    "analysts": {QUERY: 0.1, PAGE: 0.1},
    # A page of the list reads the ids of all datasets that the analyst may see, so it may grow
    # faster.
    "datasets": {QUERY: 0.1, PAGE: 0.25},
    "clients": {QUERY: 0.1},
}
SECONDS = {"entries": 400.0, "analysts": 80.0, "datasets": 200.0, "clients": 60.0}


def entries(result: Result, setting: Setting) -> None:
    charged: dict[int, Way] = {}
    verified: dict[int, Way] = {}
    with ExitStack() as stack:
        within = stack.enter_context(folder())
        for size in sizes_of(ENTRIES, setting):
            url = f"sqlite:///{within}/{size}.db"
            database, ledger = stack.enter_context(opened(url, within))
            pair = hot_account(database)
            fill(ledger, pair, size // ACCOUNTS)
            charged[size] = partial(_charged, ledger, pair)
            verified[size] = processor(partial(verify, database))
        # Charging makes the ledgers longer, so it is measured last.
        report(result, f"entries, {VERIFIED}", verified, 3)
        report(result, f"entries, {CHARGED}", charged, setting.times(5))


def _charged(ledger: Ledger, pair: Pair) -> float:
    """Seconds of a processor per query, the clients' included."""
    return processor(partial(fill, ledger, pair, PAIRS, CONNECTIONS))() / PAIRS


def analysts(result: Result, setting: Setting) -> None:
    _services(result, setting, "analysts", ANALYSTS, _with_analysts, "admin", "/v1/users")


def _with_analysts(session: Session, size: int) -> Iterator[bytes]:
    """A query of each analyst in turn, for ever."""
    session.describe(TABLE)
    session.upload("small", b"sex\nMale\nFemale\n")
    keys = [session.keys["analyst"]]
    for number in range(1, size):
        name = f"analyst-{number}"
        person = {"name": name, "roles": ["analyst"]}
        keys.append(session.send("admin", "POST", "/v1/users", json=person)["key"])
        session.send("owner", "PUT", f"/v1/datasets/small/budgets/{name}", json=AMPLE)
    return cycle([_query(key, body("0.001")) for key in keys])


def datasets(result: Result, setting: Setting) -> None:
    _services(result, setting, "datasets", DATASETS, _with_datasets, "analyst", "/v1/datasets")


def _with_datasets(session: Session, size: int) -> Iterator[bytes]:
    """A query of each dataset in turn, for ever."""
    names = ["small", *(f"small-{number}" for number in range(1, size))]
    for name in names:
        session.describe(TABLE | {"name": name})
        session.upload(name, b"sex\nMale\nFemale\n")
    key = session.keys["analyst"]
    bodies = [body("0.001").replace(b'"small"', f'"{name}"'.encode()) for name in names]
    return cycle([_query(key, one) for one in bodies])


def _services(
    result: Result,
    setting: Setting,
    name: str,
    sizes: Sequence[int],
    fill: Callable[[Session, int], Iterator[bytes]],
    reader: str,
    path: str,
) -> None:
    """A service of each size: a query of all in turn, and a page of one row of their list."""
    queries: dict[int, Way] = {}
    pages: dict[int, Way] = {}
    with ExitStack() as stack:
        for size in sizes_of(sizes, setting):
            session = stack.enter_context(Session.opened(ROOT, SERVE, **SETTINGS))
            sent = fill(session, size)
            page = get(f"{path}?limit=1", _bearer(session.keys[reader]))
            queries[size] = _work(setting, session, partial(next, sent), 201)
            pages[size] = _work(setting, session, partial(bytes, page), 200)
        report(result, f"{name}, {QUERY}", queries, setting.times(5))
        report(result, f"{name}, {PAGE}", pages, setting.times(5))


def clients(result: Result, setting: Setting) -> None:
    with Session.opened(ROOT, SERVE, **SETTINGS) as session:
        sent = _with_analysts(session, 1)
        ways = {
            size: _work(setting, session, partial(next, sent), 201, size)
            for size in sizes_of(CLIENTS, setting)
        }
        report(result, f"clients, {QUERY}", ways, setting.times(5))


def _work(
    setting: Setting,
    session: Session,
    make: Callable[[], bytes],
    status: int,
    connections: int = CONNECTIONS,
) -> Way:
    """Seconds of a processor that the service takes per request."""
    seconds = 0.5 if setting.quick else 2.0
    pressure = Pressure(session.service, make, seconds, status, connections)

    def way() -> float:
        pressure()
        return pressure.work[-1]

    return way


def _query(key: str, sent: bytes) -> bytes:
    return post("/v1/queries", sent, _bearer(key))


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


RUNS = {"entries": entries, "analysts": analysts, "datasets": datasets, "clients": clients}
BENCHES = tuple(
    Bench(
        f"growth.{name}",
        f"How does the work of a paid query grow with {name}, and is there a cliff?",
        run,
        SECONDS[name],
        bars=bars(name, MOST[name]),
    )
    for name, run in RUNS.items()
)
