"""Real tables and graphs over HTTP: every statistic by every mechanism, at exact prices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from app.demo.service import ServiceProcess
from mechanisms.statistics.validity import VALID
from tests.data import data_file
from tests.e2e.real_graphs import MAX_DEGREE, read_edges, register
from tests.e2e.session import Session

pytestmark = pytest.mark.data

#: The numbers that are asked about, and what every known count of a graph is.
TABLES = {"sf_salaries": ("TotalPay", 148_654), "adult": ("hours-per-week", 45_222)}
TRIANGLES = {"github": 523_810, "enron": 727_044, "dblp": 2_224_385, "gowalla": 2_273_138}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    data = tmp_path_factory.mktemp("statistics") / "data"
    with ServiceProcess(data, PURSE_RELEASE_INTERVAL="0") as service:
        yield Session.open(service)


def ask(session: Session, dataset: str, epsilon: str, **query: Any) -> float:
    """The released value; its steps must add up to the price that was asked for."""
    body = {"dataset": dataset, "epsilon": epsilon, "query": {"kind": "statistic", **query}}
    reply = session.ok("POST", "/v1/queries", session.analyst, json=body)
    expected = {"epsilon": Decimal(epsilon), "delta": Decimal(query.get("delta", "0"))}
    for part, amount in expected.items():
        assert Decimal(reply["charge"][part]) == amount
        assert sum(Decimal(step[part]) * step["times"] for step in reply["steps"]) == amount
    value: float = reply["answer"]["value"]
    return value


def every(session: Session, dataset: str, relation: str, **fields: Any) -> dict[str, list[float]]:
    """Each statistic of a relation by each of its mechanisms, at ε = 1."""
    found: dict[str, list[float]] = {}
    for row in VALID:
        if relation in row.relations:
            own = {**fields.get(row.statistic, {}), "mechanism": row.mechanism}
            if row.delta:
                own["delta"] = "0.000001"
            value = ask(session, dataset, "1", statistic=row.statistic, **own)
            found.setdefault(row.statistic, []).append(value)
    return found


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("name", TABLES)
def test_tables(session: Session, name: str, relation: str) -> None:
    file = data_file(f"{name}.csv.gz")
    schema = json.loads(data_file(f"{name}.schema.json").read_text())
    column, rows = TABLES[name]
    dataset = f"{name}_{relation}"
    public = {
        "name": dataset,
        "kind": "table",
        "neighbouring": relation,
        **({"max_rows": 200_000} if relation == "add_remove" else {"rows": rows}),
        "attributes": [described(attribute) for attribute in schema["attributes"]],
        "cap": {"epsilon": "1000", "delta": "0.1"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=public)
    session.upload(dataset, file.read_bytes(), **{"Content-Encoding": "gzip"})
    limit = {"epsilon": "1000", "delta": "0.1"}
    session.ok("PUT", f"/v1/datasets/{dataset}/budgets/ada", session.owner, json=limit)
    of = {"attribute": column}
    found = every(
        session,
        dataset,
        relation,
        sum=of,
        mean=of,
        median=of,
        quantile={**of, "quantile": 0.25},
    )
    # 50 scales of noise at ε = 1: not once in 10²⁰ queries.
    assert abs(found["count"][0] - rows) <= 50
    assert found["quantile"][0] <= found["median"][0]
    assert abs(found["mean"][0] - found["sum"][0] / rows) <= 0.02 * abs(found["mean"][0])


def described(attribute: dict[str, Any]) -> dict[str, Any]:
    """A registered attribute from the folder's own description."""
    numeric = attribute["kind"] == "numeric"
    own = {"bounds" if numeric else "values": attribute["domain"]}
    return {"name": attribute["name"], "kind": attribute["kind"], "missing": "", **own}


@pytest.mark.parametrize("name", TRIANGLES)
def test_graphs(session: Session, name: str) -> None:
    file = data_file(f"{name}.edges.csv.gz")
    edges = read_edges(file)
    dataset = f"{name}_counts"
    register(session, dataset, np.unique(edges), file, MAX_DEGREE[name], delta="0.1")
    found = every(session, dataset, "edge", stars={"k": 2})
    assert all(abs(value - len(edges)) <= 100 for value in found["edges"])
    # At ε = 20 hardly a rung beyond the second is reached, each about as wide as a_max.
    accurate = ask(session, dataset, "20", statistic="triangles")
    assert accurate == pytest.approx(TRIANGLES[name], rel=0.05)
