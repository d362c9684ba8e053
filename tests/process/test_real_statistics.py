"""Real tables and graphs over HTTP: every statistic by every mechanism, at exact prices."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from mechanisms.statistics.validity import VALID
from tests.process.real_graphs import MAX_DEGREE, read_edges, register
from tests.process.session import Session
from tests.support.data import data_file

pytestmark = pytest.mark.data

#: For each table: the number of rows, and a condition with the exact number of rows that meet it.
TABLES: dict[str, tuple[int, dict[str, Any], int]] = {
    "sf_salaries": (148_654, {"attribute": "TotalPay", "to": 0}, 1),
    "adult": (
        45_222,
        {
            "all": [
                {"attribute": "sex", "in": ["Female"]},
                {"not": {"attribute": "hours-per-week", "from": 40}},
            ]
        },
        5_370,
    ),
}
TRIANGLES = {"github": 523_810, "enron": 727_044, "dblp": 2_224_385, "gowalla": 2_273_138}


def ask(session: Session, dataset: str, epsilon: str, **query: Any) -> float:
    """Returns the released value; its steps must add up to the requested price."""
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
    answers: dict[str, list[float]] = {}
    for row in VALID:
        if relation in row.relations:
            own = {**fields.get(row.statistic, {}), "mechanism": row.mechanism}
            if row.delta:
                own["delta"] = "0.000001"
            value = ask(session, dataset, "1", statistic=row.statistic, **own)
            answers.setdefault(row.statistic, []).append(value)
    return answers


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("adult", "add_remove"),
        ("adult", "replace"),
        pytest.param("sf_salaries", "add_remove", marks=pytest.mark.slow),
        pytest.param("sf_salaries", "replace", marks=pytest.mark.slow),
    ],
)
def test_tables(session: Session, name: str, relation: str) -> None:
    file = data_file(f"{name}.csv.gz")
    schema = json.loads(data_file(f"{name}.schema.json").read_text())
    rows, where, meeting = TABLES[name]
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
    # The bound is 50 scales of the noise at ε = 1, which less than one query in 10²⁰ exceeds.
    assert abs(ask(session, dataset, "1", statistic="count") - rows) <= 50
    columns = [a["name"] for a in schema["attributes"] if a["kind"] == "numeric"]
    assert len(columns) == {"sf_salaries": 7, "adult": 6}[name]
    for column in columns:
        of = {"attribute": column}
        fields = {"sum": of, "mean": of, "median": of, "quantile": {**of, "quantile": 0.9}}
        answers = every(session, dataset, relation, count={"where": where}, **fields)
        assert abs(answers["count"][0] - meeting) <= 50
        assert answers["median"][0] <= answers["quantile"][0]
        low, high = next(a["domain"] for a in schema["attributes"] if a["name"] == column)
        # The noisy sum and the noisy mean may each be off by 50 scales of their noise.
        away = 100 * max(high - low, abs(low), abs(high)) / rows + 1
        assert abs(answers["mean"][0] - answers["sum"][0] / rows) <= away


def test_the_sum_of_the_smallest_salaries(session: Session) -> None:
    file = data_file("sf_salaries.csv.gz")
    column = pyarrow.csv.read_csv(file)["TotalPay"].to_numpy()
    values = np.sort(np.maximum(column, 0)).tolist()
    cutoff = 100_000
    public = {
        "name": "salaries",
        "kind": "prefix",
        "neighbouring": "prefix",
        "public_values": values,
        "cap": {"epsilon": "1000", "delta": "0.1"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=public)
    session.upload("salaries", f"cutoff\n{cutoff}\n".encode())
    limit = {"epsilon": "1000", "delta": "0.1"}
    session.ok("PUT", "/v1/datasets/salaries/budgets/ada", session.owner, json=limit)
    answers = every(session, "salaries", "prefix")["smallest_sum"]
    assert len(answers) == 3
    # The noise of each mechanism has a scale of at most twice the global sensitivity, so the bound
    # below is at least 50 scales of it.
    assert all(abs(value - sum(values[:cutoff])) <= 100 * values[-1] for value in answers)


def described(attribute: dict[str, Any]) -> dict[str, Any]:
    """A registered attribute from the description in the data folder."""
    numeric = attribute["kind"] == "numeric"
    own = {"bounds" if numeric else "values": attribute["domain"]}
    return {"name": attribute["name"], "kind": attribute["kind"], "missing": "", **own}


@pytest.mark.parametrize(
    "name",
    [
        "github",
        pytest.param("enron", marks=pytest.mark.slow),
        pytest.param("dblp", marks=pytest.mark.slow),
        pytest.param("gowalla", marks=pytest.mark.slow),
    ],
)
def test_graphs(session: Session, name: str) -> None:
    file = data_file(f"{name}.edges.csv.gz")
    edges = read_edges(file)
    dataset = f"{name}_counts"
    register(session, dataset, np.unique(edges), file, MAX_DEGREE[name], delta="0.1")
    answers = every(session, dataset, "edge", stars={"k": 2})
    for k in (3, 4):
        for row in VALID:
            if row.statistic == "stars":
                own = {"delta": "0.000001"} if row.delta else {}
                ask(session, dataset, "1", statistic="stars", k=k, mechanism=row.mechanism, **own)
    assert all(abs(value - len(edges)) <= 100 for value in answers["edges"])
    # At ε = 20 the ladder rarely draws beyond its second rung (range of answers). A rung is about
    # as wide as the largest number of common neighbours of two nodes.
    accurate = ask(session, dataset, "20", statistic="triangles")
    assert accurate == pytest.approx(TRIANGLES[name], rel=0.05)
