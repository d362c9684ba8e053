"""Meters queries on datasets of one description and prints what differs, as JSON.

Run by ``test_meter`` in a process of its own, whose arguments ``--all`` and ``--growth`` it knows.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from tests.evidence.timing import plain  # noqa: F401 - first: kernels become plain Python

# isort: split
from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY, QUERY_KINDS, QueryContext
from app.queries.parts.candidates import utilities_of
from app.queries.parts.dataset_examples import candidates_of
from app.queries.parts.query import Query
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.kernels.level_counts import all_level_tables
from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.level_tables import split
from mechanisms.model.open_domain import OpenAttribute, OpenValues
from mechanisms.model.records import GraphRecords, PrefixRecords, Records, TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work
from tests.evidence.certification.graphs import all_graphs, dataset_of, edges_of
from tests.evidence.timing.meter import CountedParts, CountedWords, Meter, most_runs
from tests.evidence.timing.transcript import fixed

#: Kinds of query whose work depends on their own releases, which ``transcript`` replaces by public
#: values. At the ε ``SMALL`` noise alone decides their other releases, so these are the same for
#: all datasets.
ADAPTIVE = ("tree", "distance", "clustering")
#: Two values of ε in units of 10⁻⁹: with the large one noise hardly matters, with the small one it
#: decides.
LARGE, SMALL = 10**9, 10**4
#: Two values of ρ in units of 10⁻¹⁵, for queries that add Gaussian noise: 1 and 10⁻⁵.
LARGE_RHO, SMALL_RHO = 10**15, 10**10
NODES = 6
GRAPHS = {
    "empty": [],
    "matching": [(0, 1), (2, 3), (4, 5)],
    "matching and an edge": [(0, 1), (2, 3), (4, 5), (0, 2)],
    "star": [(0, v) for v in range(1, NODES)],
    "path": [(v, v + 1) for v in range(NODES - 1)],
    "complete": list(combinations(range(NODES), 2)),
}
#: Small tables as rows (attribute A, class C, number): the class may be pure, off by one record, or
#: balanced.
TABLES: dict[str, list[tuple[int, int, int]]] = {
    "pure": [(i % 3, 0, 0) for i in range(8)],
    "one off": [(i % 3, int(i == 0), int(i == 0)) for i in range(8)],
    "balanced": [(i % 2, i // 2 % 2, i % 4) for i in range(8)],
    "split": [(i % 2, i % 2, 3 * (i % 2)) for i in range(8)],
    "last": [(2, 1, 3)] * 8,
}
#: The name of the dataset with an open attribute, whose values its description does not list.
OPEN = "open table"
#: The name of the dataset with a date, persons of two rows each, and small counts that are
#: suppressed.
VISITS = "visits of persons"
#: The name of the dataset with stored tables of counts, as the service stores them. Other datasets
#: have none, so both ways to count are metered.
STORED = "stored tables"
MONTHS = DateAttribute("day", "2024-01-01", "2024-04-30", "month")
CUTOFFS = (0, 1, 3, 6)
STAGES = {"stages": {"shortlist": 3, "share": 0.5}}


def families(every: bool) -> Iterator[tuple[str, Dataset, Mapping[str, Records]]]:
    """Names, descriptions and records; under add/remove with equally many rows."""
    names = GRAPHS if every else ("matching", "matching and an edge", "star")
    graphs = {name: prepared(NODES, GRAPHS[name]) for name in names}
    yield "graph", dataset_of(NODES, NODES - 1), graphs
    if every:
        listed = {str(graph): prepared(4, edges_of(graph)) for graph in all_graphs(4, 3)}
        yield "every graph of four nodes", dataset_of(4, 3), listed
    names = TABLES if every else ("pure", "one off", "balanced")
    tables = {name: table_of(TABLES[name]) for name in names}
    for relation, bounds in bounds_of(8):
        described = table_dataset(relation, bounds)
        yield f"table, {relation}", described, tables
    domain = described.domain
    assert isinstance(domain, TableDomain)
    counted = {name: with_tables(table, domain) for name, table in tables.items()}
    yield STORED, Dataset(STORED, NeighbouringRelation.ADD_REMOVE, domain), counted
    number = NumericAttribute("number", 0.0, 4.0, (0.0, 4.0))
    attributes = (OpenAttribute("V"), CategoricalAttribute("C", ("0", "1")), number)
    domain = TableDomain(attributes, max_rows=9)
    open_tables = {name: open_table_of(TABLES[name]) for name in names}
    yield OPEN, Dataset(OPEN, NeighbouringRelation.ADD_REMOVE, domain), open_tables
    domain = replace(described.domain, attributes=(*described.domain.attributes, MONTHS))
    visits = Dataset(VISITS, NeighbouringRelation.ADD_REMOVE, domain, 2, minimum_count=3)
    yield VISITS, visits, {name: visits_of(TABLES[name]) for name in names}
    values = PrefixDomain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0))
    cutoffs: dict[str, Records] = {str(k): PrefixRecords(k) for k in CUTOFFS}
    yield "prefix", Dataset("prefix", NeighbouringRelation.PREFIX, values), cutoffs


def bounds_of(rows: int) -> list[tuple[NeighbouringRelation, dict[str, int]]]:
    """Each relation of tables with its bound on so many rows."""
    added = {"max_rows": rows + 1}
    return [
        (NeighbouringRelation.REPLACE, {"rows": rows}),
        (NeighbouringRelation.ADD_REMOVE, added),
    ]


def table_dataset(relation: NeighbouringRelation, bounds: dict[str, int]) -> Dataset:
    domain = TableDomain(
        (
            CategoricalAttribute("A", ("0", "1", "2")),
            CategoricalAttribute("C", ("0", "1")),
            NumericAttribute("number", 0.0, 4.0, (0.0, 2.0, 4.0)),
        ),
        class_attribute="C",
        person="id" if relation is NeighbouringRelation.ADD_REMOVE else None,
        **bounds,
    )
    return Dataset("table", relation, domain)


def prepared(nodes: int, edges: list[tuple[int, int]]) -> GraphRecords:
    """A graph with all its prepared columns and totals."""
    ends = np.array(edges, dtype=np.int32).reshape(-1, 2).T.copy()
    indptr, indices = compressed_rows(*ends, nodes)
    columns = prepare_graph(indptr, indices, Inline())
    totals = prepare_totals(indptr, indices, columns["co_degree"], Inline())
    return GraphRecords(indptr, indices, columns, totals)


def table_of(rows: list[tuple[int, int, int]]) -> TableRecords:
    a, c, number = np.array(rows).T
    codes = {"A": a, "C": c, "number": number // 2}
    column = number.astype(np.float64)
    return TableRecords(
        {name: codes[name].astype(np.uint8) for name in codes},
        {"number": column},
        {"number": np.sort(column)},
        persons=np.sort(a).astype(np.int32),
    )


def with_tables(records: TableRecords, domain: TableDomain) -> TableRecords:
    tables = split(all_level_tables(records, domain, Inline()), domain)
    return replace(records, tables=tables)


def visits_of(rows: list[tuple[int, int, int]]) -> TableRecords:
    """A day in the month of each row's number; of each person two rows."""
    table = table_of(rows)
    days = (30 * table.values["number"]).astype(np.int32)
    codes = {**table.codes, "day": MONTHS.codes[days].astype(np.uint8)}
    persons = np.arange(table.rows, dtype=np.int32) // 2
    return replace(table, codes=codes, days={"day": days}, persons=persons)


def open_table_of(rows: list[tuple[int, int, int]]) -> TableRecords:
    """The values of V are those of A and number together: some datasets have more of them."""
    texts = [f"{a}{'x' * number}" for a, _, number in rows]
    values = sorted(set(texts))
    content = np.frombuffer("".join(values).encode(), np.uint8)
    codes = {
        "V": np.array([values.index(text) for text in texts], np.int32),
        "C": np.array([c for _, c, _ in rows], np.uint8),
        "number": np.zeros(len(rows), np.uint8),
    }
    ends = np.cumsum([len(text) for text in values])
    numbers = np.array([number for _, _, number in rows], np.float64)
    return TableRecords(codes, {"number": numbers}, open_values={"V": OpenValues(content, ends)})


def adaptive_bodies(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Every option of the adaptive kinds, and contexts that are drawn before any table."""
    if dataset.name == OPEN:
        return
    for kind in ADAPTIVE:
        yield from QUERY_KINDS[kind].examples.every(dataset)
    if isinstance(dataset.domain, TableDomain):
        for context, sensitivity in product(
            ("max_relevance", "max_dependency"), ("global", "local")
        ):
            drawn = {"context": context, "context_size": 1, "sensitivity": sensitivity}
            names = ["A", "C", "number"]
            yield {"kind": "distance", "target": "A", "attributes": names, **drawn}
        # With so few rows clustering tries a single start (one set of initial centres), unless the
        # query names more.
        yield {"kind": "clustering", "clusters": 2, "encoding": "one_hot", "starts": 2}


def bodies(dataset: Dataset, every: bool) -> Iterator[dict[str, Any]]:
    """Every utility, objective, sensitivity and statistic; with ``every`` all examples too."""
    if dataset.name == OPEN:
        # At so small a δ no group of so few rows is released, so no work may differ because of a
        # release.
        least = {"kind": "table", "delta": "0.000000000000000001"}
        where = {"attribute": "V", "in": ["0", "2xxx", "none"]}
        yield {**least, "by": ["V"]}
        yield {**least, "by": ["C", "V"], "where": where}
        of_number = [{"name": name, "attribute": "number"} for name in ("sum", "variance")]
        yield {**least, "by": ["V"], "aggregates": of_number}
        top = {"kind": "top_k", "k": 2, "candidates": {"values_of": "V"}}
        yield {**top, "utilities": [{"name": "count"}], "delta": least["delta"]}
        yield {"kind": "statistic", "statistic": "count", "where": where}
        return
    if dataset.name == STORED:
        yield from stored_bodies(dataset)
        return
    if dataset.name == VISITS:
        yield from visit_bodies()
        return
    yield from QUERY_KINDS["statistic"].examples.every(dataset)
    yield from QUERY_KINDS["table"].examples.every(dataset)
    if isinstance(dataset.domain, TableDomain):
        where = {"attribute": "A", "in": ["0"]}
        of_numbers = {"kind": "statistic", "attribute": "number", "where": where}
        smooth = {"mechanism": "smooth_sensitivity", "delta": "0.001"}
        yield {**of_numbers, "statistic": "mean"}
        yield {**of_numbers, "statistic": "median"}
        yield {**of_numbers, "statistic": "quantile", "quantile": 0.25, **smooth}
    joint = list(QUERY_KINDS["top_k"].examples.every(dataset))
    if every:
        yield from QUERY_KINDS["selection"].examples.every(dataset)
        yield from joint
    else:
        yield from (body for body in joint if "draws" not in body and "objective" not in body)
    for kind_of, candidates in candidates_of(dataset).items():
        names = [one.name for one in utilities_of(kind_of, dataset.neighbouring)]
        members = [{"name": name} for name in names]
        for sensitivity in Sensitivity:
            common = {"candidates": candidates, "sensitivity": sensitivity.value}
            for member in members:
                yield {"kind": "selection", "utilities": [member], **common}
            if kind_of == "nodes" and sensitivity is not Sensitivity.SHIFTED:
                yield {"kind": "top_k", "k": 2, "utilities": members[:1], **common, **STAGES}
            if len(members) > 1:
                several = {"kind": "top_k", "k": 2, "utilities": members[:3], **common}
                yield {**several, "objective": "weighted_sum"}
                yield {**several, "objective": "pareto", "passes": 2, "rescore": True}


def stored_bodies(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Queries that read stored tables in place of rows, or for a part of their work."""
    where = {"any": [{"attribute": "A", "in": ["0"]}, {"not": {"attribute": "C", "in": ["1"]}}]}
    yield {"kind": "statistic", "statistic": "count", "where": where}
    for by in ([], ["A"], ["C", "number"], [{"attribute": "A", "groups": {"a": ["0", "2"]}}]):
        yield {"kind": "table", "by": by}
    yield {"kind": "table", "by": ["A"], "where": where}
    yield {"kind": "table", "by": ["A"], "where": {"attribute": "number", "from": 2}}
    yield {"kind": "table", "by": [{"attribute": "number", "edges": [2, 4]}]}
    for candidates in candidates_of(dataset).values():
        utilities = [{"name": "count" if "values_of" in candidates else "information_gain"}]
        if "trees" not in candidates:
            yield {"kind": "selection", "candidates": candidates, "utilities": utilities}


def visit_bodies() -> Iterator[dict[str, Any]]:
    """Dates, persons and suppressed counts, with every option of totals and adjustments."""
    several = {"from": "2024-01-05", "to": "2024-03-15"}
    for ends in ({"from": "2024-02-01"}, several, {"in": ["2024-02"]}):
        where = {"attribute": "day", **ends}
        yield {"kind": "table", "by": ["day"], "where": where}
        for name in ("count", "sum", "mean", "median"):
            of = {} if name == "count" else {"attribute": "number"}
            yield {"kind": "statistic", "statistic": name, "where": where, **of}
    aggregates = [
        {"name": "persons"},
        *({"name": name, "attribute": "number"} for name in ("mean", "variance", "quantiles")),
    ]
    table = {"kind": "table", "by": ["day", "C"], "aggregates": aggregates}
    for totals in ("sums", "none", {"measured": [["C"], []], "share": "0.5"}):
        for non_negative in (False, True):
            yield {**table, "totals": totals, "non_negative": non_negative}
    yield {**table, "totals": totals, "consistent": False}
    groups = {"attribute": "A", "groups": {"first": ["0", "2"], "none": []}}
    yield {"kind": "table", "by": [groups, "day"], "aggregates": aggregates[:1]}
    top = {"kind": "top_k", "k": 2, "candidates": {"values_of": "A"}}
    yield {**top, "utilities": [{"name": "count"}]}


def gaussian_bodies(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Every example that adds Gaussian noise."""
    if dataset.name not in (OPEN, STORED):
        for kind in QUERY_KINDS.values():
            yield from kind.examples.gaussian(dataset)


def metered(
    body: Mapping[str, Any], dataset: Dataset, records: Records, amount: PrivacyLoss
) -> Meter:
    meter = Meter()
    with fixed():
        meter.run(computation(body, dataset, records, amount), seed=1)
    return meter


def prepare(
    body: Mapping[str, Any], dataset: Dataset, records: Records, amount: PrivacyLoss
) -> None:
    """Build the tables of public facts, which otherwise the first metered query would build."""
    counts: Counter[str] = Counter()
    with fixed():
        computation(body, dataset, records, amount)(CountedWords(1, counts), CountedParts(counts))


def computation(
    body: Mapping[str, Any], dataset: Dataset, records: Records, amount: PrivacyLoss
) -> Callable[[CountedWords, CountedParts], object]:
    query = QUERY.validate_json(json.dumps(body))
    loss = loss_of(query, amount)
    return lambda words, parts: query.compute(QueryContext(records, dataset, loss, words, parts))


def findings(every: bool) -> dict[str, Any]:
    """What differs by query, what ran beyond its bound, and which declarations were reached."""
    differ: dict[str, list[str]] = {}
    beyond: set[str] = set()
    declared: set[str] = set()
    uncounted: dict[str, str] = {}
    queries = 0
    for family, dataset, records in families(every):
        pure = [PrivacyLoss(nano) for nano in (LARGE, SMALL)]
        in_rho = [PrivacyLoss(0, 0, rho, 1) for rho in (LARGE_RHO, SMALL_RHO)]
        chosen = [(body, pure[: 1 + every]) for body in bodies(dataset, every)]
        chosen += [(body, pure[1:]) for body in adaptive_bodies(dataset)]
        chosen += [(body, in_rho) for body in gaussian_bodies(dataset)]
        for body, losses in chosen:
            for loss in losses:
                first: Meter | None = None
                work = work_of(body, dataset, loss)
                prepare(body, dataset, next(iter(records.values())), loss)
                for one in records.values():
                    meter = metered(body, dataset, one, loss)
                    first, queries = first or meter, queries + 1
                    beyond |= set(meter.beyond)
                    declared |= meter.declared
                    if most := meter.uncounted(work):
                        uncounted[f"{family}: {json.dumps(body)}"] = most
                    if places := first.differs(meter):
                        differ.setdefault(f"{family}: {json.dumps(body)}", places[:4])
    return {
        "queries": queries,
        "differ": differ,
        "beyond": sorted(beyond),
        "declared": sorted(declared),
        "uncounted": uncounted,
    }


def work_of(body: Mapping[str, Any], dataset: Dataset, amount: PrivacyLoss) -> Work:
    query = QUERY.validate_json(json.dumps(body))
    return query.work(dataset, loss_of(query, amount))


def loss_of(query: Query, amount: PrivacyLoss) -> PrivacyLoss:
    return amount if amount.unpriced else replace(amount, delta_atto=query.delta_atto())


def larger(times: int) -> Iterator[tuple[str, Dataset, Mapping[str, Records]]]:
    """Descriptions with so many times as many nodes or rows, and records of each."""
    nodes = NODES * times
    matching = [(v, v + 1) for v in range(0, nodes, 2)]
    star = [(0, v) for v in range(1, nodes)]
    graphs = {name: prepared(nodes, edges) for name, edges in (("m", matching), ("s", star))}
    yield "graph", dataset_of(nodes, nodes - 1), graphs
    for relation, bounds in bounds_of(8 * times):
        tables = {name: table_of(TABLES[name] * times) for name in ("balanced", "one off")}
        yield f"table, {relation}", table_dataset(relation, bounds), tables


def most_by_query(times: int) -> dict[str, tuple[int, Work]]:
    """By query: how often the line ran that ran most often, and the work that its cost counts."""
    most = {}
    for family, dataset, records in larger(times):
        chosen = [(body, PrivacyLoss(LARGE)) for body in bodies(dataset, every=False)]
        chosen += [(body, PrivacyLoss(SMALL)) for body in adaptive_bodies(dataset)]
        for body, loss in chosen:
            prepare(body, dataset, next(iter(records.values())), loss)
            meters = [metered(body, dataset, one, loss) for one in records.values()]
            runs = max(max((one.lines + one.followed).values(), default=0) for one in meters)
            most[f"{family}: {json.dumps(body)}"] = runs, work_of(body, dataset, loss)
    return most


def growth() -> dict[str, Any]:
    """By query, runs of lines that grow by more than the cost does, from few records to many."""
    few, many = most_by_query(2), most_by_query(6)
    faster = {}
    for body in few.keys() & many.keys():
        (runs, work), (fewer_runs, less_work) = many[body], few[body]
        grown, counted = runs - fewer_runs, most_runs(work) - most_runs(less_work)
        # Some work grows with the records up to a public bound, which the cost counts in full. So a
        # line that stays below the whole cost need not grow as slowly as the cost.
        is_bounded = runs <= sum(one.units for one in work.values())
        if grown > counted and not is_bounded:
            faster[body] = [grown, counted]
    return {"queries": len(few), "faster": faster}


if __name__ == "__main__":
    np.seterr(all="ignore")
    arguments = sys.argv[1:]
    print(json.dumps(growth() if "--growth" in arguments else findings("--all" in arguments)))
