"""Whether the instants of answers tell neighbouring datasets apart, seen from outside.

One analyst of a real service with its default settings asks the same question of two neighbours, X
and Y, in an order that coins decide, and takes the time of each reply. For each kind the pair is
the one on which the work of such queries has differed most. A rank test (Mann and Whitney 1947)
compares the two sides of every question; the chances are corrected for their number (Holm 1979).
Records move no instant, so the test is to find nothing on a busy machine either. There, however,
work starts late or deadlines are missed: how many queries left later than their quote said is shown
by side, and on a quiet machine there are none.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

from scipy import stats

from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Cell, Result
from benchmarks.service.session import Session

#: The chance that any test raises a false alarm, over all questions together.
ALPHA = 0.01
#: How often each question is asked of each of two neighbouring datasets.
SIDE = 200
MATCHED, LEAVES, ROWS = 150_000, 1_000, 20_000
SIDES = ("x", "y")
#: Limits that suffice for 100,000 queries on one dataset, in ε (AMPLE) and in ρ (IN_RHO).
AMPLE = {"epsilon": "100000", "delta": "0.01"}
IN_RHO = {**AMPLE, "epsilon": "1000", "composition_delta": "0.000001", "gaussian": True}


def edges(*pairs: tuple[int, int]) -> bytes:
    return b"source,target\n" + b"".join(b"%d,%d\n" % pair for pair in pairs)


def rows(*texts: str) -> bytes:
    return "\n".join(("colour,size,class", *texts, "")).encode()


_MATCHING = [(i, i + 1) for i in range(0, MATCHED, 2)]
_STAR = [(0, i) for i in range(1, LEAVES + 1)]
_PURE = [f"{('red', 'blue', 'green')[i % 3]},0,no" for i in range(ROWS)]
_GRAPH = {"kind": "graph", "neighbouring": "edge"}
_ATTRIBUTES = [
    {"name": "colour", "kind": "categorical", "values": ["red", "blue", "green"]},
    {"name": "size", "kind": "numeric", "bounds": [0, 100], "bins": 5},
    {"name": "class", "kind": "categorical", "values": ["yes", "no"]},
]
_TABLE = {
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": ROWS + 1,
    "class_attribute": "class",
    "attributes": _ATTRIBUTES,
}
_OPEN = [{"name": "colour", "kind": "categorical", "values": "open", "missing": "none"}]


class Pair(NamedTuple):
    """A description, two neighbours that fit it, and the allowance."""

    description: Mapping[str, Any]
    x: bytes
    y: bytes
    allowance: Mapping[str, Any] = AMPLE


_ALIKE = rows(*_PURE), rows(*_PURE, "red,100,yes")
#: Pairs of neighbouring datasets. They differ in one edge (between two pairs of a perfect matching,
#: or two leaves of a star), in one row among rows of equal class and number, or in a row with a new
#: value.
PAIRS: Mapping[str, Pair] = {
    "matching": Pair(
        {**_GRAPH, "nodes": {"count": MATCHED}, "max_degree": 100},
        edges(*_MATCHING),
        edges(*_MATCHING, (1, 2)),
    ),
    "star": Pair(
        {**_GRAPH, "nodes": {"count": 2 * LEAVES}, "max_degree": LEAVES},
        edges(*_STAR),
        edges(*_STAR, (1, 2)),
    ),
    "pure": Pair(_TABLE, *_ALIKE),
    # After its first Gaussian noise an account admits charges by ρ alone. So queries with Gaussian
    # noise have datasets of their own, and all others keep the ample limit in ε.
    "in-rho": Pair(_TABLE, *_ALIKE, allowance=IN_RHO),
    "open": Pair(
        {**_TABLE, "attributes": [*_OPEN, *_ATTRIBUTES[1:]]},
        rows(*_PURE),
        rows(*_PURE, "violet,100,yes"),
    ),
}


@dataclass
class Question:
    """One query on one pair; ``seconds`` and ``lengths`` by side, from the client and the list."""

    name: str
    pair: str
    query: Mapping[str, Any]
    amount: str = "0.01"
    deadline: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    lengths: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})

    def body(self, side: str) -> dict[str, Any]:
        of = "rho" if PAIRS[self.pair].allowance is IN_RHO else "epsilon"
        return {"dataset": f"{self.pair}-{side}", of: self.amount, "query": self.query}

    def ask(self, session: Session, side: str) -> None:
        started = time.perf_counter()
        headers = {"Prefer": "wait=300"}
        session.send("analyst", "POST", "/v1/queries", json=self.body(side), headers=headers)
        self.seconds[side].append(time.perf_counter() - started)
        (latest,) = session.send("analyst", "GET", "/v1/queries?limit=1")["items"]
        start, end = (datetime.fromisoformat(latest[at]) for at in ("created", "released"))
        self.lengths[side].append(round((end - start).total_seconds(), 6))

    def chance(self) -> float:
        """At most this likely are sides as far apart as these, when they are alike."""
        return float(stats.mannwhitneyu(*(self.seconds[side] for side in SIDES)).pvalue)

    def late(self, side: str) -> int:
        """The queries of a side that left later than their deadline."""
        return sum(length != self.deadline for length in self.lengths[side])


def questions() -> list[Question]:
    degrees = [{"name": "degree"}, {"name": "egocentric_betweenness"}]
    pareto = {"utilities": degrees, "objective": "pareto", "sensitivity": "local"}
    betweenness = {"kind": "top_k", "k": 10, "utilities": degrees[1:]}
    dense = [degrees[0], {"name": "egocentric_density", "weight": 100}]
    total = {"kind": "top_k", "k": 10, "objective": "weighted_sum", "utilities": dense}
    median = {"kind": "statistic", "statistic": "median", "attribute": "size"}
    smooth = {"mechanism": "smooth_sensitivity", "delta": "0.000000001"}
    gains = {"kind": "selection", "candidates": {"attributes": ["colour", "size"]}}
    trees = [
        {"attribute": "colour", "value": "red", "equal": {"label": a}, "other": {"label": b}}
        for a, b in (("yes", "no"), ("no", "yes"))
    ]
    rates = [{"name": "true_positive_rate"}, {"name": "true_negative_rate"}]
    of_trees = {"trees": trees, "class_attribute": "class", "positive_class": "yes"}
    pruned = {"kind": "tree", "max_depth": 2, "sensitivity": "local"}
    search = {
        "generations": 2,
        "population": 8,
        "selected": 4,
        "initial_depth": 1,
        "positive_class": "yes",
    }
    numbers = [
        {"name": "variance", "attribute": "size"},
        {"name": "quantiles", "attribute": "size"},
    ]
    by = {"kind": "table", "by": ["colour", "class"]}
    few = {"attribute": "class", "in": ["yes"]}
    least = "0.000001"
    return [
        Question("selection, pareto", "matching", {"kind": "selection", **pareto}, least),
        Question("top_k, pareto", "matching", {"kind": "top_k", "k": 3, **pareto}, least),
        Question("top_k, local", "star", {**betweenness, "sensitivity": "local"}),
        Question("top_k, flattened", "star", {**betweenness, "sensitivity": "flattened"}),
        Question("top_k, sum, local", "star", {**total, "sensitivity": "local"}),
        Question("top_k, laplace", "star", {**betweenness, "selector": "laplace"}),
        Question("top_k, subset", "star", {**betweenness, "selector": "subset"}),
        Question("top_k, stages", "star", {**betweenness, "stages": {"shortlist": 30}}),
        Question("top_k, open", "open", {"kind": "top_k", "k": 2, "utilities": [{"name": "count"}],
                 "candidates": {"values_of": "colour"}, "delta": "0.000000001"}),
        Question("triangles, ladder", "star", statistic("triangles", mechanism="ladder")),
        Question("stars, ladder", "star", statistic("stars", k=3, mechanism="ladder")),
        Question("triangles, smooth", "star", statistic("triangles", **smooth)),
        Question("median, smooth", "pure", {**median, **smooth}, "1"),
        Question("median, exponential", "pure", {**median, "mechanism": "exponential"}),
        Question("median, where", "pure", {**median, "where": few}),
        Question("count", "pure", statistic("count")),
        Question("count, in rho", "in-rho", {"kind": "table", "by": []}, "0.0001"),
        Question("gains", "pure", {**gains, "utilities": [{"name": "information_gain"}],
                 "sensitivity": "local"}),
        Question("table", "pure", by),
        Question("table, options", "pure", {**by, "aggregates": numbers, "where": few}),
        Question("table, open", "open", {"kind": "table", "by": ["colour"],
                 "delta": "0.000000001"}),
        Question("table, in rho", "in-rho", by, "0.0001"),
        Question("tree, id3", "pure", {**pruned, "algorithm": "id3"}),
        Question("tree, id3, in rho", "in-rho", {**pruned, "algorithm": "id3"}, "0.0001"),
        Question("tree, evolutionary", "pure", {**pruned, "algorithm": "evolutionary", **search}),
        Question("tree, forest", "pure", {"kind": "tree", "algorithm": "forest", "trees": 4}),
        Question("tree, naive Bayes", "pure", {"kind": "tree", "algorithm": "naive_bayes"}),
        Question("trees by rates", "pure", {"kind": "selection", "candidates": of_trees,
                 "utilities": rates, "objective": "pareto", "sensitivity": "local"}),
        Question("distance", "pure", {"kind": "distance", "target": "colour"}),
        Question("distance, local", "pure", {"kind": "distance", "context": "max_dependency",
                 "context_size": 1, "sensitivity": "local"}),
        Question("clustering", "pure", {"kind": "clustering", "clusters": 2, "iterations": 2}),
    ]  # fmt: skip


def statistic(name: str, **options: Any) -> dict[str, Any]:
    return {"kind": "statistic", "statistic": name, **options}


def corrected(chances: Sequence[float]) -> list[float]:
    """The chances of several tests, each multiplied so that one bound holds for all (Holm)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    whole, highest = [0.0] * len(chances), 0.0
    for rank, number in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[number]))
        whole[number] = highest
    return whole


def run(result: Result, setting: Setting) -> None:
    listed, coins = questions(), Random(setting.seed)
    with Session.opened() as session:
        describe(session)
        for one in listed:
            observe(one, session, setting.size(SIDE * setting.more, 20), coins)
    table: list[list[Cell]] = []
    for one, chance in zip(listed, corrected([one.chance() for one in listed]), strict=True):
        late = [one.late(side) for side in SIDES]
        table.append([one.name, one.deadline, len(one.seconds["x"]), chance, *late])
        result.stored[one.name] = {"seconds": one.seconds, "lengths": one.lengths}
        result.measure(f"{one.name}: chance if alike", chance)
        result.measure(f"{one.name}: queries beyond their deadline", sum(late))
    columns = ["question", "deadline in s", "a side", "chance if alike", "late on X", "late on Y"]
    result.table("X and Y by the instants of replies", columns, table)


def describe(session: Session) -> None:
    """Register and upload both sides of all pairs."""
    for pair, of in PAIRS.items():
        for side, content in zip(SIDES, (of.x, of.y), strict=True):
            name = f"{pair}-{side}"
            session.describe({"name": name, **of.description}, of.allowance)
            session.upload(name, content)


def observe(one: Question, session: Session, count: int, coins: Random) -> None:
    """Ask on both sides, so many times each, in the order of a coin."""
    quotes = [session.send("analyst", "POST", "/v1/quotes", json=one.body(s)) for s in SIDES]
    if quotes[0] != quotes[1]:
        raise AssertionError(f"the quotes of {one.name} differ: {quotes}")
    one.deadline = quotes[0]["seconds"]
    for side in SIDES:  # The first query fills caches, so its time is discarded.
        one.ask(session, side)
        one.seconds[side].clear()
        one.lengths[side].clear()
    for _ in range(count):
        order = list(SIDES)
        coins.shuffle(order)
        for side in order:
            one.ask(session, side)


BENCHES = (
    Bench(
        "timing.black_boxes",
        "Do the instants of answers tell neighbouring datasets apart?",
        run,
        900.0,
        bars=(
            Bar("*: chance if alike", least=ALPHA),
            Bar("*: queries beyond their deadline", most=0),
        ),
    ),
)
