"""How many queries fit accounts of ε = 1, 3 and 10: by sums of ε, and by ρ at δ_c = 10⁻⁶.

Quotes state each number. The small ones are bought until the account refuses in every run, and
those up to 5,000 in the slow one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest

from tests.support.service import GRAPH, Service

EPSILONS = ("1", "3", "10")
PURE: dict[str, Any] = {"composition_delta": "0"}
IN_RHO: dict[str, Any] = {"composition_delta": "0.000001", "gaussian": True}
#: Up to SMALL queries are bought in every run, and up to LARGE queries in slow runs only.
SMALL, LARGE = 10, 5_000

VALUES = [str(value) for value in range(10)]
ATTRIBUTES = [f"a{number}" for number in range(11)]
TABLE: dict[str, Any] = {
    "kind": "table",
    "attributes": [
        {"name": name, "kind": "categorical", "values": VALUES if name < "a1" else ["0", "1"]}
        for name in [*ATTRIBUTES, "a00"]
    ],
    "class_attribute": "a1",
}
RECORDS = ",".join([*ATTRIBUTES, "a00"]) + "\n" + (",".join("1" * 12) + "\n") * 20
EDGES = "source,target\n" + "".join(f"{node},{node + 1}\n" for node in range(12))
CAP = {"epsilon": "1000", **IN_RHO}
DATASETS: dict[str, tuple[dict[str, Any], str]] = {
    "table": (TABLE | {"neighbouring": "add_remove", "max_rows": 1000}, RECORDS),
    "replaced": (TABLE | {"neighbouring": "replace", "rows": 20}, RECORDS),
    "graph": (GRAPH | {"nodes": {"count": 20}}, EDGES),
}

TOP: dict[str, Any] = {"kind": "top_k", "k": 10, "utilities": [{"name": "degree"}]}
PEELED = TOP | {"sensitivity": "global", "selector": "permute_and_flip", "draws": "peeled"}
SET = TOP | {"sensitivity": "global", "selector": "subset"}
TREE: dict[str, Any] = {
    **{"kind": "tree", "algorithm": "id3", "max_depth": 5, "attributes": ATTRIBUTES[2:7]},
    "selector": "exponential",
}
PAIRS: dict[str, Any] = {"kind": "distance", "context": "baseline", "attributes": ATTRIBUTES}
CELLS: dict[str, Any] = {"kind": "table", "by": ["a0", "a00"]}


class Row(NamedTuple):
    """A query, and how many of it fit by sums of ε and by ρ alone in accounts of ``EPSILONS``."""

    dataset: str
    query: dict[str, Any]
    price: dict[str, str]
    in_epsilon: tuple[int, int, int] | None
    in_rho: tuple[int, int, int]

    def body(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "query": self.query} | self.price

    def bought(self, limits: dict[str, Any], number: int) -> int:
        """How many can be bought; an account that counts in ρ takes what either measure admits."""
        in_epsilon = self.in_epsilon[number] if self.in_epsilon else 0
        return max(in_epsilon, self.in_rho[number]) if limits is IN_RHO else in_epsilon


ROWS = {
    "ten nodes, one by one": Row("graph", PEELED, {"epsilon": "0.214"}, (4, 14, 46), (10, 80, 672)),
    "a set of ten nodes": Row(
        "graph", SET, {"epsilon": "0.022"}, (45, 136, 454), (402, 3_059, 25_442)
    ),
    "Gaussian degrees": Row("graph", TOP, {"rho": "0.0000605"}, None, (402, 3_059, 25_442)),
    "a tree": Row("table", TREE, {"epsilon": "0.5"}, (2, 6, 20), (3, 30, 252)),
    "a tree of Gaussian counts": Row("table", TREE, {"rho": "0.0045333"}, None, (5, 40, 339)),
    "tables of 55 pairs": Row("replaced", PAIRS, {"epsilon": "1"}, (1, 3, 10), (5, 40, 338)),
    "Gaussian tables of 55 pairs": Row(
        "replaced", PAIRS, {"rho": "0.002272727272727"}, None, (10, 81, 677)
    ),
    "100 cells": Row("table", CELLS, {"epsilon": "0.1"}, (10, 30, 100), (4, 37, 308)),
    "100 Gaussian cells": Row("table", CELLS, {"rho": "0.0025"}, None, (9, 74, 615)),
    "100 cells at 0.01": Row(
        "table", CELLS, {"epsilon": "0.01"}, (100, 300, 1_000), (487, 3_701, 30_785)
    ),
    "100 Gaussian cells as at 0.01": Row(
        "table", CELLS, {"rho": "0.000025"}, None, (974, 7_402, 61_571)
    ),
    "100 cells at 0.5": Row("table", CELLS, {"epsilon": "0.5"}, (2, 6, 20), (0, 1, 12)),
    "100 Gaussian cells as at 0.5": Row("table", CELLS, {"rho": "0.0625"}, None, (0, 2, 24)),
}
#: Each purchase has the name of a row in ROWS, the limits of the account, and the index of its ε in
#: EPSILONS.
PURCHASES = [
    pytest.param(
        *(name, limits, number),
        marks=[pytest.mark.slow] if count > SMALL else [],
        id=f"{name}, {EPSILONS[number]}, {'in rho' if limits is IN_RHO else 'pure'}",
    )
    for name, row in ROWS.items()
    for number in range(len(EPSILONS))
    for limits in (PURE, IN_RHO)
    if 0 < (count := row.bought(limits, number)) <= LARGE
]


@pytest.fixture(scope="module")
def market(shared: Callable[[], AbstractContextManager[Service]]) -> Iterator[Service]:
    """The three datasets, whose caps take all that is bought."""
    with shared() as service:
        for name, (described, records) in DATASETS.items():
            described = described | {"name": name, "cap": CAP}
            reply = service("olga", "POST", "/v1/datasets", json=described)
            assert reply.status_code == 201, reply.text
            assert service.upload("olga", name, records.encode()).status_code == 201
        yield service


def new_analyst(service: Service) -> str:
    return service.user(f"analyst-{len(service.keys)}", "analyst")


def grant(service: Service, dataset: str, name: str, epsilon: str, limits: dict[str, Any]) -> None:
    path = f"/v1/datasets/{dataset}/budgets/{name}"
    reply = service("olga", "PUT", path, json={"epsilon": epsilon} | limits)
    assert reply.status_code == 200, reply.text


def fits_more(service: Service, name: str, row: Row) -> int:
    reply = service(name, "POST", "/v1/quotes", json=row.body())
    assert reply.status_code == 200, reply.text
    count: int = reply.json()["fits_more"]
    return count


@pytest.mark.parametrize("number, epsilon", list(enumerate(EPSILONS)))
@pytest.mark.long
def test_quotes_state_how_many_fit(market: Service, number: int, epsilon: str) -> None:
    pure, both, closed = (new_analyst(market) for _ in range(3))
    for dataset in DATASETS:
        grant(market, dataset, pure, epsilon, PURE)
        grant(market, dataset, both, epsilon, IN_RHO)
        grant(market, dataset, closed, epsilon, IN_RHO)
        # After a Gaussian charge the account counts in ρ alone. This charge is so small that nearly
        # all of ρ is left.
        least = TOP if dataset == "graph" else CELLS
        body = {"dataset": dataset, "rho": "0.000000001", "query": least}
        assert market(closed, "POST", "/v1/queries", json=body).status_code == 201
    for name, row in ROWS.items():
        assert fits_more(market, pure, row) == row.bought(PURE, number), name
        assert fits_more(market, both, row) == row.bought(IN_RHO, number), name
        assert fits_more(market, closed, row) == row.in_rho[number], name


@pytest.mark.parametrize("name, limits, number", PURCHASES)
@pytest.mark.long
def test_so_many_are_bought_and_no_more(
    market: Service, name: str, limits: dict[str, Any], number: int
) -> None:
    row = ROWS[name]
    analyst = new_analyst(market)
    grant(market, row.dataset, analyst, EPSILONS[number], limits)
    bought = row.bought(limits, number)
    for count in range(bought):
        reply = market(analyst, "POST", "/v1/queries", json=row.body())
        assert reply.status_code == 201, (count, reply.text)
    refused = market(analyst, "POST", "/v1/queries", json=row.body())
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/budget-exhausted")
