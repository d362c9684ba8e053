"""Every statistic by every mechanism over HTTP, with exact charges and free refusals."""

from __future__ import annotations

import json
from decimal import Decimal
from math import exp
from typing import Any

import httpx
import pytest

from accounting.group_privacy import member_loss
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.statistics.validity import VALID, ValidCombination
from tests.support.service import Service

TABLE: dict[str, Any] = {
    "name": "staff",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "town", "kind": "categorical", "values": ["a", "b"], "missing": "?"},
        {"name": "age", "kind": "numeric", "bounds": [0, 100], "bins": 4, "missing": "none"},
        {"name": "pay", "kind": "numeric", "bounds": [-0.5, 1000.5]},
    ],
    "cap": {"epsilon": "100000000", "delta": "0.9"},
}
#: A table with the ages 0 … 99 four times, one of them missing. Pay is ten times the age.
ROWS = "town,age,pay\n" + "".join(
    f"{'ab?'[i % 3]},{i % 100 if i else 'none'},{10 * (i % 100)}\n" for i in range(400)
)
PREFIX: dict[str, Any] = {
    "name": "list",
    "kind": "prefix",
    "neighbouring": "prefix",
    "public_values": [-5, 0, 0, 2.5, 10, 20],
    "cap": {"epsilon": "100000000", "delta": "0.9"},
}
CLIQUE = "source,target\n" + "".join(f"{a},{b}\n" for a in range(6) for b in range(a))
GRAPH: dict[str, Any] = {
    "name": "clique",
    "nodes": {"count": 9},
    "max_degree": 8,
    "cap": {"epsilon": "100000000", "delta": "0.9"},
}
#: The dataset for each neighbouring relation, and below it the options of each statistic.
NAMES = {"edge": "clique", "prefix": "list", "add_remove": "staff", "replace": "replaced"}
FIELDS: dict[str, dict[str, Any]] = {
    "count": {"where": {"attribute": "age", "from": 50, "to": 60}},
    "sum": {"attribute": "pay"},
    "mean": {"attribute": "pay"},
    "median": {"attribute": "pay"},
    "quantile": {"attribute": "pay", "quantile": 0.25},
    "stars": {"k": 3},
}
#: The true value of each statistic, and the largest noise to expect at ε = 100 000.
EXACT: dict[str, tuple[float, float]] = {
    "count": (40, 1),
    "sum": (198_000, 1),
    "mean": (495, 1),
    "median": (490, 20),
    "quantile": (240, 20),
    "smallest_sum": (-2.5, 1),
    "edges": (15, 1),
    "triangles": (20, 1),
    "two_triangles": (90, 1),
    "stars": (60, 1),
}
EVERY = [(row, relation) for row in VALID for relation in row.relations]


def send(service: Service, path: str = "/v1/queries", **body: Any) -> httpx.Response:
    content = json.dumps(body)
    headers = {"Content-Type": "application/json"}
    reply: httpx.Response = service("ana", "POST", path, content=content, headers=headers)
    return reply


def body_of(row: ValidCombination, relation: str, epsilon: Any = 100_000) -> dict[str, Any]:
    query = {
        "kind": "statistic",
        "statistic": row.statistic,
        "mechanism": row.mechanism,
        **FIELDS.get(row.statistic, {}),
    }
    if row.delta:
        query["delta"] = "0.001"
    return {"dataset": NAMES[relation], "epsilon": epsilon, "query": query}


@pytest.fixture
def answering(people: Service) -> Service:
    replaced = {**TABLE, "name": "replaced", "neighbouring": "replace", "rows": 400}
    del replaced["max_rows"]
    for body, records in ((TABLE, ROWS), (replaced, ROWS), (PREFIX, "cutoff\n4\n")):
        assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
        reply = people.upload("olga", body["name"], records.encode())
        assert reply.status_code == 201, reply.text
    people.dataset("olga", CLIQUE.encode(), **GRAPH)
    for name in NAMES.values():
        limit = {"epsilon": "10000000", "delta": "0.5"}
        people("olga", "PUT", f"/v1/datasets/{name}/budgets/ana", json=limit)
    return people


def spent(service: Service, name: str) -> dict[str, str]:
    items = service("ana", "GET", "/v1/budgets").json()["items"]
    (account,) = [item for item in items if item["dataset"] == name]
    amounts: dict[str, str] = account["spent"]
    return amounts


@pytest.mark.long
def test_every_valid_combination_answers_at_its_exact_price(answering: Service) -> None:
    for row, relation in EVERY:
        body = body_of(row, relation)
        before = spent(answering, NAMES[relation])
        reply = send(answering, **body)
        assert reply.status_code == 201, (row, reply.text)
        answered = reply.json()
        charge = answered["charge"]
        delta = "0.001" if row.delta else "0"
        # The ε of 100,000 is charged as ρ = 1,000 at most, which exceeds the limit of every
        # account.
        assert Decimal(charge.pop("rho")) <= 1000
        assert charge == {"epsilon": "100000", "delta": delta, "neighbouring": relation}
        for part in ("epsilon", "delta"):
            steps = sum(Decimal(step[part]) * step["times"] for step in answered["steps"])
            assert steps == Decimal(charge[part])
            after = Decimal(spent(answering, NAMES[relation])[part])
            assert after - Decimal(before[part]) == Decimal(charge[part])
        expected, away = EXACT[row.statistic]
        if row.mechanism == "laplace" or relation == "prefix" or row.mechanism == "exponential":
            assert abs(answered["answer"]["value"] - expected) <= away, (row, answered["answer"])
        else:
            # These mechanisms have noise that depends on the records. The bound is far wider than
            # this noise.
            assert abs(answered["answer"]["value"] - expected) <= away + 19, row
        public = row.mechanism == "laplace" and (row.statistic, relation) != ("mean", "add_remove")
        assert ("noise_scale" in answered["answer"]) == public
        answer = answered["answer"]
        assert ("explanation" in answer) == (row.mechanism != "laplace")
        assert ("confidence" in answer) == ("low" in answer) == (row.mechanism == "laplace")
        if "low" in answer:
            assert answer["low"] <= answer["value"] <= answer["high"]
            # The noise exceeds ten widths of the interval with probability below e⁻²⁵.
            width = answer["high"] - answer["low"] + 1e-6
            assert abs(answer["value"] - expected) <= 10 * width, (row, answer)
        assert ("parts" in answer) == ((row.statistic, relation) == ("mean", "add_remove"))


def test_quotes_tell_what_is_public(answering: Service) -> None:
    for row, relation in EVERY:
        body = body_of(row, relation, epsilon="0.5")
        reply = send(answering, "/v1/quotes", **body)
        assert reply.status_code == 200, (row, reply.text)
        accuracy = reply.json()["accuracy"]
        assert accuracy["confidence"] == 0.95
        fields = {
            "laplace": {"error", "noise_scale"} if row.statistic != "mean" else set(),
            "exponential": {"rank_error"},
        }.get(row.mechanism, {"error_at_most"})
        assert fields <= set(accuracy), (row, accuracy)
        assert "depend" in accuracy["explanation"]


def test_a_quote_finds_the_loss_for_an_error(answering: Service) -> None:
    count = {"kind": "statistic", "statistic": "count"}
    target = {"dataset": "staff", "target": {"error": 30}, "query": count}
    reply = send(answering, "/v1/quotes", **target).json()
    assert reply["accuracy"]["error"] == pytest.approx(30, rel=1e-3)
    assert float(reply["charge"]["epsilon"]) == pytest.approx(0.09986, rel=1e-3)
    median = {"kind": "statistic", "statistic": "median", "attribute": "age"}
    target = {"dataset": "staff", "target": {"rank_error": 10}, "query": median}
    reply = send(answering, "/v1/quotes", **target).json()
    assert reply["accuracy"]["rank_error"] == pytest.approx(10, rel=1e-3)
    triangles = {"kind": "statistic", "statistic": "triangles"}
    target = {"dataset": "clique", "target": {"error": 10}, "query": triangles}
    reply = send(answering, "/v1/quotes", **target)
    assert (reply.status_code, reply.json()["type"]) == (422, "/problems/unsupported-query")


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"attribute": "age", "from": 0, "to": 10}, 39),
        ({"attribute": "age", "from": 90}, 40),
        ({"attribute": "age", "in": [3, 4.0, "none"]}, 9),
        ({"attribute": "town", "in": ["a", "?"]}, 267),
        ({"all": [{"attribute": "town", "in": ["a"]}, {"attribute": "age", "to": 5}]}, 6),
        ({"any": [{"attribute": "age", "in": [1]}, {"attribute": "age", "in": [2]}]}, 8),
        ({"not": {"attribute": "town", "in": ["a"]}}, 266),
        ({"not": {"attribute": "age", "from": 0}}, 1),
        ({"all": []}, 400),
        ({"any": []}, 0),
        ({"attribute": "town", "in": []}, 0),
    ],
)
def test_conditions(answering: Service, where: dict[str, Any], count: int) -> None:
    query = {"kind": "statistic", "statistic": "count", "where": where}
    reply = send(answering, dataset="staff", epsilon=1000, query=query)
    assert reply.json()["answer"]["value"] == count


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"attribute": "age", "from": 1}
    for _ in range(depth - 1):
        where = {"not": where}
    return where


def test_depth_eight_is_the_deepest(answering: Service) -> None:
    for depth, status in ((8, 201), (9, 422), (25, 422)):
        query = {"kind": "statistic", "statistic": "count", "where": nested(depth)}
        reply = send(answering, dataset="staff", epsilon=1, query=query)
        assert reply.status_code == status


BAD: list[tuple[str, dict[str, Any]]] = [
    ("staff", {"statistic": "quantile", "attribute": "age", "quantile": 1.5}),
    ("staff", {"statistic": "quantile", "attribute": "age", "quantile": -0.1}),
    ("staff", {"statistic": "quantile", "attribute": "age", "quantile": 0.12345678}),
    ("staff", {"statistic": "quantile", "attribute": "age"}),
    ("staff", {"statistic": "median", "attribute": "town"}),
    ("staff", {"statistic": "median", "attribute": "nobody"}),
    ("staff", {"statistic": "median"}),
    ("staff", {"statistic": "median", "attribute": "age", "k": 2}),
    ("staff", {"statistic": "median", "attribute": "age", "quantile": 0.5}),
    ("staff", {"statistic": "median", "attribute": "age", "mechanism": "smooth_sensitivity"}),
    ("staff", {"statistic": "median", "attribute": "age", "mechanism": "ladder"}),
    ("staff", {"statistic": "median", "attribute": "age", "delta": 0.1}),
    ("staff", {"statistic": "triangles"}),
    ("staff", {"statistic": "smallest_sum", "delta": 0.1}),
    ("staff", {"statistic": "variance"}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "from": 6, "to": 5}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "from": 5, "to": 5}}),
    ("staff", {"statistic": "count", "where": {"attribute": "town", "from": 5}}),
    ("staff", {"statistic": "count", "where": {"attribute": "town", "in": ["z"]}}),
    ("staff", {"statistic": "count", "where": {"attribute": "town", "in": [1]}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "in": ["x"]}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "in": [True]}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "in": 5}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age"}}),
    ("staff", {"statistic": "count", "where": {"attribute": 5, "in": []}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "in": [], "to": 1}}),
    ("staff", {"statistic": "count", "where": {"nobody": []}}),
    ("staff", {"statistic": "count", "where": {}}),
    ("staff", {"statistic": "count", "where": {"all": {}}}),
    ("staff", {"statistic": "count", "where": {"not": []}}),
    ("staff", {"statistic": "count", "where": {"all": [1]}}),
    ("staff", {"statistic": "count", "where": {"attribute": "age", "in": list(range(1001))}}),
    ("staff", {"statistic": "count", "where": {"all": [{"all": []}] * 1000}}),
    ("staff", {"statistic": "count", "where": {"attribute": "nobody", "in": []}}),
    ("clique", {"statistic": "triangles", "mechanism": "smooth_sensitivity"}),
    ("clique", {"statistic": "triangles", "mechanism": "smooth_sensitivity", "delta": 0}),
    ("clique", {"statistic": "triangles", "mechanism": "smooth_sensitivity", "delta": 1}),
    ("clique", {"statistic": "triangles", "mechanism": "smooth_sensitivity", "delta": 1.5}),
    ("clique", {"statistic": "triangles", "mechanism": "smooth_sensitivity", "delta": -0.1}),
    ("clique", {"statistic": "triangles", "mechanism": "noisy_local_sensitivity", "delta": 0.1}),
    ("clique", {"statistic": "triangles", "mechanism": "exponential"}),
    ("clique", {"statistic": "triangles", "delta": 0.1}),
    ("clique", {"statistic": "triangles", "attribute": "age"}),
    ("clique", {"statistic": "stars"}),
    ("clique", {"statistic": "stars", "k": 1}),
    ("clique", {"statistic": "stars", "k": 5}),
    ("clique", {"statistic": "stars", "k": 2.0}),
    ("clique", {"statistic": "stars", "k": True}),
    ("clique", {"statistic": "count"}),
    ("list", {"statistic": "smallest_sum"}),
    ("list", {"statistic": "sum", "attribute": "age"}),
]


def test_bad_questions_are_refused_for_free(answering: Service) -> None:
    for name, query in BAD:
        for path in ("/v1/queries", "/v1/quotes"):
            question = {"kind": "statistic", **query}
            reply = send(answering, path, dataset=name, epsilon=1, query=question)
            assert reply.status_code == 422, (query, reply.text)
    assert {spent(answering, name)["epsilon"] for name in NAMES.values()} == {"0"}


def test_monstrous_conditions_are_refused_for_free(answering: Service) -> None:
    for count in (150_000, 10**6):
        where = {"attribute": "age", "in": list(range(count))}
        query = {"kind": "statistic", "statistic": "count", "where": where}
        reply = send(answering, dataset="staff", epsilon=1, query=query)
        assert reply.status_code in (413, 422)
    deep = '{"dataset":"staff","epsilon":1,"query":{"kind":"statistic","statistic":"count","where":'
    headers = {"Content-Type": "application/json"}
    for depth in (1000, 100_000):
        content = deep + '{"not":' * depth + "{}" + "}" * (depth + 2)
        reply = answering("ana", "POST", "/v1/queries", content=content, headers=headers)
        assert reply.status_code == 422
    assert spent(answering, "staff")["epsilon"] == "0"


def test_empty_tables_answer(people: Service) -> None:
    assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
    upload = people.upload("olga", "staff", b"town,age,pay\n")
    assert upload.status_code == 201, upload.text
    limit = {"epsilon": "1000", "delta": "0.5"}
    people("olga", "PUT", "/v1/datasets/staff/budgets/ana", json=limit)
    for row, of in EVERY:
        if of is NeighbouringRelation.ADD_REMOVE:
            reply = send(people, **body_of(row, of, epsilon=1))
            assert reply.status_code == 201, (row, reply.text)
            if row.statistic in ("mean", "median", "quantile"):
                assert -0.5 <= reply.json()["answer"]["value"] <= 1000.5


@pytest.mark.parametrize(("nodes", "degree"), [(1, 0), (2, 1), (3, 2), (5, 0), (5, 1), (50, 49)])
@pytest.mark.long
def test_empty_graphs_answer(people: Service, nodes: int, degree: int) -> None:
    shape = {"nodes": {"count": nodes}, "max_degree": degree}
    people.dataset("olga", b"source,target\n", **{**GRAPH, **shape})
    limit = {"epsilon": "1000", "delta": "0.5"}
    people("olga", "PUT", "/v1/datasets/clique/budgets/ana", json=limit)
    for row, of in EVERY:
        if of is NeighbouringRelation.EDGE:
            reply = send(people, **body_of(row, "edge", epsilon=1))
            assert reply.status_code == 201, (row, reply.text)
            assert isinstance(reply.json()["answer"]["value"], int)


def test_the_smallest_and_the_largest_epsilon(answering: Service) -> None:
    for row, relation in EVERY:
        for epsilon in ("0.000001", "1000000"):
            reply = send(answering, "/v1/quotes", **body_of(row, relation, epsilon))
            assert reply.status_code == 200, (row, epsilon, reply.text)
            if epsilon == "0.000001":
                assert send(answering, **body_of(row, relation, epsilon)).status_code == 201, row


def test_people_with_several_records_are_protected_as_a_group(people: Service) -> None:
    """Three records per person: ε/3 per record, and δ / (1 + e^(ε/3) + e^(2ε/3))."""
    body = {**TABLE, "records_per_person": 3}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    limit = {"epsilon": "1000", "delta": "0.5"}
    people("olga", "PUT", "/v1/datasets/staff/budgets/ana", json=limit)
    count = {"kind": "statistic", "statistic": "count"}
    quoted = send(people, "/v1/quotes", dataset="staff", epsilon=3, query=count).json()
    assert quoted["accuracy"]["noise_scale"] == pytest.approx(1, rel=1e-5)
    median = {
        "kind": "statistic",
        "statistic": "median",
        "attribute": "pay",
        "mechanism": "smooth_sensitivity",
        "delta": "0.01",
    }
    reply = send(people, dataset="staff", epsilon=3, query=median).json()
    assert Decimal(reply["charge"].pop("rho")) == Decimal(pure_femto(3 * 10**9)) / 10**15
    assert reply["charge"] == {"epsilon": "3", "delta": "0.01", "neighbouring": "add_remove"}
    own, rest = reply["steps"]
    share = member_loss(PrivacyLoss.parse("3", "0.01"), 3)
    assert PrivacyLoss.parse(own["epsilon"], own["delta"]) == share
    assert share.delta_atto / 1e18 == pytest.approx(0.01 / (1 + exp(1) + exp(2)))
    assert Decimal(own["epsilon"]) + Decimal(rest["epsilon"]) == 3
    assert Decimal(own["delta"]) + Decimal(rest["delta"]) == Decimal("0.01")
    assert spent(people, "staff") == {"epsilon": "3", "delta": "0.01"}
    # A δ whose share per record is below a unit of 10⁻¹⁸ is refused without charge.
    reply = send(people, dataset="staff", epsilon=3, query={**median, "delta": "1e-18"})
    assert reply.status_code == 422
    # With three records per person and ε/3 = 1, one unit of 10⁻¹⁸ per record needs 1 + e + e² =
    # 11.1 units, so 12 are the least.
    assert reply.json()["supported"] == {"delta": "at least 0.000000000000000012"}
    assert spent(people, "staff") == {"epsilon": "3", "delta": "0.01"}


def test_a_table_of_one_row_and_a_list_without_a_cut_off_answer(people: Service) -> None:
    # Under the relation replace, a table has at least one row.
    single = {**TABLE, "neighbouring": "replace", "name": "replaced"}
    del single["max_rows"]
    for body, records in ((single, b"town,age,pay\na,none,3\n"), (PREFIX, b"cutoff\n0\n")):
        assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
        reply = people.upload("olga", body["name"], records)
        assert reply.status_code == 201, reply.text
        limit = {"epsilon": "1000", "delta": "0.5"}
        people("olga", "PUT", f"/v1/datasets/{body['name']}/budgets/ana", json=limit)
    for row, of in EVERY:
        if of in (NeighbouringRelation.REPLACE, NeighbouringRelation.PREFIX):
            reply = send(people, **body_of(row, of, epsilon=1))
            assert reply.status_code == 201, (row, reply.text)


def test_bounds_the_wrong_way_round_are_refused(people: Service) -> None:
    reversed_bounds = {"name": "age", "kind": "numeric", "bounds": [100, 0]}
    for attribute in (reversed_bounds, {**reversed_bounds, "bounds": [5, "nan"]}):
        reply = people("olga", "POST", "/v1/datasets", json={**TABLE, "attributes": [attribute]})
        assert reply.status_code == 422, reply.text
    falling = {**PREFIX, "public_values": [3, 2, 1]}
    assert people("olga", "POST", "/v1/datasets", json=falling).status_code == 422


def test_clamped_numbers_count_as_their_bounds(people: Service) -> None:
    wide = [{"name": "pay", "kind": "numeric", "bounds": [0, 10], "clamp": True}]
    body = {**TABLE, "attributes": wide}
    reply = people("olga", "POST", "/v1/datasets", json=body)
    assert reply.status_code == 201, reply.text
    assert people.upload("olga", "staff", b"pay\n-1000\n5\n7\n99999\n").status_code == 201
    limit = {"epsilon": "10000000", "delta": "0.5"}
    people("olga", "PUT", "/v1/datasets/staff/budgets/ana", json=limit)
    query = {"kind": "statistic", "statistic": "sum", "attribute": "pay"}
    reply = send(people, dataset="staff", epsilon=100_000, query=query)
    assert reply.json()["answer"]["value"] == pytest.approx(22, abs=0.1)
