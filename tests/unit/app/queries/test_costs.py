"""The public memory of a query bounds what its work takes, whatever the records are."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY, QUERY_KINDS, QueryContext
from app.queries.parts.cost import FIXED
from app.service.made_up import table_domain
from mechanisms.kernels.graphs.preparation import GRAPH_COLUMNS
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, Records, TableRecords
from mechanisms.noise.keystream import SystemRandomness

NODES, ROWS = 200_000, 300_000


def graph() -> tuple[Records, Dataset]:
    """A ring, whose prepared columns are any numbers that fit: only their sizes matter."""
    nodes = np.arange(NODES, dtype=np.int32)
    indices = np.sort(np.stack([(nodes - 1) % NODES, (nodes + 1) % NODES], 1), axis=1)
    random = np.random.default_rng(0)
    columns = {name: random.integers(0, 3, NODES).astype(np.int64) for name in GRAPH_COLUMNS}
    for name in ("degree", "co_degree"):
        columns[name] = columns[name].astype(np.int32)
    indptr = np.arange(0, 2 * NODES + 1, 2)
    records = GraphRecords(indptr, indices.astype(np.int32).ravel(), columns)
    return records, Dataset("g", NeighbouringRelation.EDGE, GraphDomain(NODES, 100))


def table(relation: NeighbouringRelation) -> tuple[Records, Dataset]:
    random, domain = np.random.default_rng(0), table_domain()
    codes = {
        one.name: random.integers(0, len(one.levels), ROWS).astype(
            np.uint8 if len(one.levels) <= 256 else np.uint16
        )
        for one in domain.attributes
    }
    numbers = random.random(ROWS) * 8
    records = TableRecords(codes, {"number": numbers}, {"number": np.sort(numbers)})
    if relation is NeighbouringRelation.REPLACE:
        domain = replace(domain, rows=ROWS, max_rows=None, min_rows=0)
    else:
        domain = replace(domain, max_rows=ROWS)
    return records, Dataset("t", relation, domain)


def peak(records: Records, dataset: Dataset, body: dict[str, Any]) -> tuple[int, int]:
    """The most bytes of arrays during the work, and the public bound on them."""
    query = QUERY.validate_json(json.dumps(body))
    loss = PrivacyLoss(10**9, query.delta_atto())
    context = QueryContext(records, dataset, loss, SystemRandomness(), Inline())
    query.compute(context)  # The first run compiles kernels and fills caches.
    tracemalloc.start()
    try:
        query.compute(context)
        return tracemalloc.get_traced_memory()[1], query.memory(dataset)
    finally:
        tracemalloc.stop()


DEGREE, DENSITY = {"name": "degree"}, {"name": "egocentric_density"}
SOME_OF_GRAPHS: list[dict[str, Any]] = [
    {"kind": "selection", "utilities": [DEGREE], "sensitivity": "local"},
    {"kind": "selection", "utilities": [DENSITY], "sensitivity": "shifted"},
    {
        "kind": "top_k",
        "k": 2,
        "objective": "weighted_sum",
        "utilities": [{**DEGREE, "weight": 1}, {**DENSITY, "weight": 2}],
        "sensitivity": "local",
    },
]
SOME_OF_TABLES: list[dict[str, Any]] = [
    {"kind": "statistic", "statistic": "median", "attribute": "number"},
    {"kind": "statistic", "statistic": "sum", "attribute": "number"},
    {
        "kind": "statistic",
        "statistic": "median",
        "attribute": "number",
        "where": {"attribute": "number", "from": 2},
    },
    {
        "kind": "statistic",
        "statistic": "count",
        "where": {"any": [{"attribute": "few", "in": ["x"]}, {"attribute": "more", "in": ["u"]}]},
    },
    {"kind": "tree", "algorithm": "id3", "attributes": ["few", "more"]},
    {"kind": "clustering", "clusters": 2, "encoding": "one_hot", "starts": 1},
]


@pytest.mark.long
@pytest.mark.parametrize("body", SOME_OF_GRAPHS)
def test_memory_on_a_graph_is_bounded(body: dict[str, Any]) -> None:
    taken, bound = peak(*graph(), body)
    assert FIXED < taken <= bound, "a smaller peak would not test the bytes of each record"


@pytest.mark.long
@pytest.mark.parametrize("body", SOME_OF_TABLES)
def test_memory_on_a_table_is_bounded(body: dict[str, Any]) -> None:
    taken, bound = peak(*table(NeighbouringRelation.ADD_REMOVE), body)
    assert taken <= bound


def every() -> Iterator[tuple[Records, Dataset]]:
    yield graph()
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        yield table(relation)


@pytest.mark.slow
def test_memory_of_every_example_is_bounded() -> None:
    for records, dataset in every():
        for kind in QUERY_KINDS.values():
            for body in kind.examples.every(dataset):
                if isinstance(records, GraphRecords) and kind.name == "statistic":
                    continue  # A statistic reads stored totals, which this made-up graph lacks.
                try:
                    taken, bound = peak(records, dataset, body)
                except UnsupportedQuery:
                    continue  # A query with too many candidates is refused before any work.
                assert taken <= bound, body


def test_a_bound_reads_the_description_alone() -> None:
    """It grows with what the owner and the analyst have made public."""
    graph_of = [Dataset("g", NeighbouringRelation.EDGE, GraphDomain(n, 9)) for n in (10, 10**6)]
    for body in SOME_OF_GRAPHS:
        small, large = (QUERY.validate_json(json.dumps(body)).memory(one) for one in graph_of)
        assert small < large
    domain = table_domain()
    tables = [
        Dataset("t", NeighbouringRelation.ADD_REMOVE, replace(domain, max_rows=rows))
        for rows in (10, 10**6)
    ]
    for body in SOME_OF_TABLES:
        small, large = (QUERY.validate_json(json.dumps(body)).memory(one) for one in tables)
        assert small < large
