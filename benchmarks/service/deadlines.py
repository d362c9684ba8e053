"""How long after their work answers leave: deadlines of default options beside the median work.

The deadline is the quote's, of a real service; the work is the same query in this process among
the others, with as many threads as a query has there, on the arrays that the service has prepared.
The public cost, worked out by the speeds of this machine, stands beside the seconds of a processor,
all threads together, with the parts that kinds of work take of it. With the tree before, both
services are asked over HTTP in the same rounds, with their default settings.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random
from statistics import median
from typing import Any, NamedTuple

from accounting.privacy_loss import NANO, PrivacyLoss
from app.config.settings import Settings
from app.contract.descriptions import TableRegistration, public_facts
from app.engine.execution import Execution
from app.engine.requests import answer_text
from app.queries import QUERY, Query, QueryContext
from app.queries.parts.cost import Speeds
from benchmarks.bench import BEFORE, Bar, Bench, Setting, edges_of, rows_of
from benchmarks.data.graphs import graph_dataset, read_nodes
from benchmarks.draws.together import speeds_of_machine
from benchmarks.result import Cell, Result
from benchmarks.rounds import Rounds, clocked
from benchmarks.service.real_graphs import GRAPHS as BOUNDS
from benchmarks.service.real_graphs import register
from benchmarks.service.session import AMPLE, CSV, Session
from mechanisms.model.domains import Dataset, TableDomain
from mechanisms.model.work import Work
from mechanisms.noise.keystream import SystemRandomness
from storage.records.preparation import open_records
from tests.support.schemas import registered

GRAPHS, TABLES = ("github", "enron"), ("adult", "adult_full")
#: The public bound on the rows of both tables, a round number.
MAX_ROWS = 50_000
#: From the request to its deadline, at most ``TIMES`` times the median work plus ``TICKS`` ticks of
#: ``TICK`` seconds may pass. Answers leave at ticks.
TIMES, TICKS, TICK = 4, 2, 0.025
BETWEENNESS = [{"name": "egocentric_betweenness"}]
PARETO = {"objective": "pareto", "utilities": [{"name": "degree"}, *BETWEENNESS]}
TOP = {"kind": "top_k", "k": 10, "utilities": BETWEENNESS, "sensitivity": "local"}
TOP_PARETO = {"kind": "top_k", "k": 5, **PARETO, "sensitivity": "local"}
MEAN = {"kind": "statistic", "statistic": "mean", "attribute": "age"}
COUNT = {"kind": "statistic", "statistic": "count"}
ID3 = {"kind": "tree", "algorithm": "id3", "max_depth": 5}
#: The queries that the checkout of ``--before`` answers as well: the dataset, the query, and how
#: many times as long it may take now.
EARLIER: Mapping[str, tuple[str, Mapping[str, Any], float]] = {
    "count": ("adult", COUNT, 1.0),
    "mean": ("adult", MEAN, 1.0),
    "ID3 of depth 5": ("adult", ID3, 1.0),
    "top-10 by betweenness": ("github", TOP, 1.75),
    "top-5 Pareto": ("github", TOP_PARETO, 4.0),
}


def of_graphs() -> Iterator[Mapping[str, Any]]:
    for kind in ({"kind": "selection"}, {"kind": "top_k", "k": 10}):
        for name in ("degree", "egocentric_betweenness", "egocentric_density"):
            yield {**kind, "utilities": [{"name": name}]}
        yield {**kind, **PARETO}
        yield {**kind, **PARETO, "objective": "weighted_sum"}
    yield {"kind": "top_k", "k": 10, "utilities": BETWEENNESS, "stages": {}}
    for name in ("edges", "triangles", "two_triangles"):
        yield {"kind": "statistic", "statistic": name}
    yield {"kind": "statistic", "statistic": "stars", "k": 3}


def of_tables(dataset: Dataset) -> Iterator[Mapping[str, Any]]:
    yield COUNT
    yield {**COUNT, "where": {"attribute": "sex", "in": ["Female"]}}
    for name in ("sum", "mean", "median"):
        yield {**MEAN, "statistic": name}
        yield {**MEAN, "statistic": name, "where": {"attribute": "sex", "in": ["Female"]}}
    yield {**MEAN, "statistic": "quantile", "quantile": 0.25}
    yield {"kind": "table", "by": ["sex", "income"]}
    yield {"kind": "table", "by": ["occupation", "education", "race"]}
    yield {
        "kind": "table",
        "by": ["sex", "income"],
        "aggregates": [{"name": name, "attribute": "age"} for name in ("mean", "quantiles")],
        "where": {"attribute": "hours-per-week", "from": 40},
    }
    assert isinstance(dataset.domain, TableDomain)
    others = [one.name for one in dataset.domain.attributes if one.name != "income"]
    attributes = {"attributes": others}
    for name in ("information_gain", "gini", "max"):
        yield {"kind": "selection", "candidates": attributes, "utilities": [{"name": name}]}
    values = {"values_of": "native-country"}
    yield {"kind": "top_k", "k": 5, "candidates": values, "utilities": [{"name": "count"}]}
    trees = [
        {"attribute": "sex", "value": "Male", "equal": {"label": a}, "other": {"label": b}}
        for a, b in ((">50K", "<=50K"), ("<=50K", ">50K"))
    ]
    yield {
        "kind": "selection",
        "candidates": {"trees": trees, "positive_class": ">50K"},
        "utilities": [{"name": "true_positive_rate"}],
    }
    yield {"kind": "tree"}
    for algorithm in ("forest", "naive_bayes"):
        yield {"kind": "tree", "algorithm": algorithm}
    yield {"kind": "tree", "algorithm": "evolutionary", "positive_class": ">50K"}
    yield {"kind": "distance"}
    for context in ("max_relevance", "max_dependency"):
        yield {"kind": "distance", "context": context}
    yield {"kind": "clustering", "clusters": 5}


def opened(session: Session, setting: Setting, name: str) -> Dataset:
    """Register and upload a graph or a table; returns its description."""
    if name in BOUNDS:
        nodes = read_nodes(setting.data, name)
        register(session, name, nodes)
        dataset = graph_dataset(name, len(nodes), BOUNDS[name])
        path = setting.data / f"{name}.edges.csv.gz"
    else:
        schema = json.loads((setting.data / f"{name}.schema.json").read_text())
        body = {
            "name": name,
            "kind": "table",
            "neighbouring": "add_remove",
            "max_rows": MAX_ROWS,
            "class_attribute": schema["class_attribute"],
            "attributes": [registered(one) for one in schema["attributes"]],
        }
        session.describe(body)
        described = json.dumps({**body, "cap": AMPLE})
        facts = public_facts(TableRegistration.model_validate_json(described))
        assert facts is not None
        dataset, path = facts, setting.data / f"{name}.csv.gz"
    session.upload(name, path.read_bytes(), CSV | {"Content-Encoding": "gzip"})
    return dataset


def seconds_of(session: Session, dataset: str, query: Mapping[str, Any]) -> float:
    """Seconds until an answer is here."""
    body = {"dataset": dataset, "epsilon": "1", "query": query}
    started = time.perf_counter()
    session.send("analyst", "POST", "/v1/queries", json=body, headers={"Prefer": "wait=300"})
    return time.perf_counter() - started


class Timed(NamedTuple):
    """A query on prepared records, and the seconds that its runs took by the clock and of a
    processor."""

    query: Query
    context: QueryContext
    clock: list[float]
    used: list[float]

    def run(self) -> None:
        before = time.process_time()
        self.clock.append(clocked(self._answered)[0])
        self.used.append(time.process_time() - before)

    def _answered(self) -> None:
        answer_text(self.query, self.context.dataset, 1, self.query.compute(self.context).answer)


def take_turns(queries: Sequence[Timed], times: int) -> None:
    """Run every query so often, after one run that does not count.

    They take turns, in another order each time. A query that runs again at once finds all it needs
    in the caches of the processor, and takes less than in a service that answers others as well.
    """
    for number in range(times + 1):
        for query in Random(number).sample(queries, len(queries)):
            query.run()
    for query in queries:
        del query.clock[0], query.used[0]


def run(result: Result, setting: Setting) -> None:
    settings, loss = Settings(), PrivacyLoss(NANO)
    executor = Execution(settings.kernel_threads(), settings.slots()).queries
    speeds = speeds_of_machine()
    for name in (*GRAPHS, *TABLES)[: setting.size(4, 1)]:
        table: list[list[Cell]] = []
        parts: list[list[Cell]] = []
        with Session.opened() as session:
            dataset = opened(session, setting, name)
            (folder,) = (session.service.data / "datasets").glob("*/1")
            records = open_records(folder, dataset.domain)
            context = QueryContext(records, dataset, loss, SystemRandomness(), executor)
            queries = list(of_graphs() if name in GRAPHS else of_tables(dataset))
            timed = [
                Timed(QUERY.validate_json(json.dumps(query)), context, [], []) for query in queries
            ]
            take_turns(timed, setting.times(5))
            for query, one in zip(queries, timed, strict=True):
                asking = {"dataset": name, "epsilon": "1", "query": query}
                quote = session.send("analyst", "POST", "/v1/quotes", json=asking)
                work, used = median(one.clock), median(one.used)
                cost = one.query.cost(dataset, loss)
                seconds = cost.seconds(speeds)
                allowed = TIMES * work + TICKS * TICK
                label = f"{name}: {named(query)}"
                table.append([label, quote["seconds"], work, quote["seconds"] / allowed])
                kinds = main_kinds(speeds, cost.work, seconds)
                parts.append([label, seconds, used, seconds / used, kinds])
                result.measure(f"{label}: deadline / what is worth waiting for",
                               quote["seconds"] / allowed, "×")  # fmt: skip
        columns = ["query", "deadline in s", "median work in s", "of 4 × work + 2 ticks"]
        result.table(f"{name}: deadlines of default options", columns, table)
        columns = ["query", "public cost", "of a processor", "cost / used", "cost by kind"]
        result.table(f"{name}: public costs in s", columns, parts)


def main_kinds(speeds: Speeds, work: Work, seconds: float) -> str:
    """The three kinds of work that take most of a public cost, with their shares of it."""
    parts = {kind: speeds.of[kind].seconds(amount) for kind, amount in work.items()}
    parts["every query"] = speeds.query
    most = sorted(parts, key=parts.__getitem__, reverse=True)[:3]
    return ", ".join(f"{kind} {parts[kind] / seconds:.0%}" for kind in most)


#: The fields of a query that list candidates.
CANDIDATES = ("attributes", "trees")


def named(value: Any) -> str:
    """All values of a query or of a part of it, but for lists of candidates."""
    if isinstance(value, Mapping):
        parts = value.items()
        return " ".join(named(one) or name for name, one in parts if name not in CANDIDATES)
    return "+".join(map(named, value)) if isinstance(value, list) else str(value)


def run_before(result: Result, setting: Setting) -> None:
    if setting.before is None:
        return
    with ExitStack() as stack:
        sessions = {"now": stack.enter_context(Session.opened())}
        sessions["before"] = stack.enter_context(Session.opened(setting.before))
        for session in sessions.values():
            for name in ("adult", "github"):
                opened(session, setting, name)
        for label, (dataset, query, _) in EARLIER.items():
            ways = {
                tree: partial(seconds_of, one, dataset, query) for tree, one in sessions.items()
            }
            rounds = Rounds.of("seconds", ways, setting.times(15)).report(result, label)
            ratio = rounds.median("now") / rounds.median("before")
            result.measure(f"{label} / before", ratio, "×")


BENCHES = (
    Bench(
        "timing.deadlines",
        "How long after the median work do answers leave, for default options of every kind?",
        run,
        150.0,
        bars=(Bar("*: deadline / what is worth waiting for", most=1),),
        files=edges_of(*GRAPHS) + rows_of(*TABLES),
    ),
    Bench(
        "timing.before",
        "How much later do answers leave than from the tree before?",
        run_before,
        90.0,
        (BEFORE,),
        tuple(
            Bar(f"{label} / before", most=most, before=True)
            for label, (_, _, most) in EARLIER.items()
        ),
        files=edges_of("github") + rows_of("adult"),
    ),
)
