"""Every kind of candidates and every objective over HTTP, and their refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import httpx
import pytest

from app.queries import QUERY
from tests.support.service import Service

TABLE: dict[str, Any] = {
    "name": "people",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
        {"name": "town", "kind": "categorical", "values": ["a", "b", "c"], "missing": "?"},
        {"name": "age", "kind": "numeric", "bounds": [0, 100], "bins": 4},
        {"name": "paid", "kind": "categorical", "values": ["yes", "no"]},
    ],
    "class_attribute": "paid",
    "cap": {"epsilon": "100000", "delta": "0"},
}
#: Table rows in which sex alone decides who is paid. The town is b in all rows but one.
ROWS = "sex,town,age,paid\n" + "".join(
    f"{'f' if i % 2 else 'm'},{'b' if i else '?'},{i % 100},{'yes' if i % 2 else 'no'}\n"
    for i in range(400)
)
ATTRIBUTES = {"attributes": ["sex", "town", "age"]}
RIGHT = {
    "attribute": "sex",
    "value": "f",
    "equal": {"label": "yes"},
    "other": {"label": "no"},
}
WRONG = {"attribute": "sex", "branches": {"f": {"label": "no"}, "m": {"label": "yes"}}}
OLD = {
    "attribute": "age",
    "threshold": 50,
    "below": {"label": "yes"},
    "above": {"label": "no"},
}
TREES = {"trees": [WRONG, OLD, RIGHT], "positive_class": "yes"}
RATES = [{"name": "true_positive_rate"}, {"name": "true_negative_rate"}]


@pytest.fixture(scope="module", params=["add_remove", "replace"])
def table(
    shared: Callable[[], AbstractContextManager[Service]], request: pytest.FixtureRequest
) -> Iterator[Service]:
    """A table with room for the queries of all tests."""
    body = {**TABLE, "neighbouring": request.param, "cap": {"epsilon": "100000000", "delta": "0"}}
    if request.param == "replace":
        del body["max_rows"]
    with shared() as people:
        assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
        assert people.upload("olga", "people", ROWS.encode()).status_code == 201
        people.grant("olga", "people", "ana", "100000000")
        yield people


def ask(service: Service, dataset: str = "people", epsilon: Any = 500, **query: Any) -> Any:
    body = {"dataset": dataset, "epsilon": epsilon, "query": {"kind": "selection", **query}}
    reply: httpx.Response = service(
        "ana",
        "POST",
        "/v1/queries",
        content=json.dumps(body),
        headers={"Content-Type": "application/json"},
    )
    return reply


def selected(reply: httpx.Response) -> Any:
    assert reply.status_code == 201, reply.text
    body = reply.json()
    total = sum(Decimal(step["epsilon"]) * step["times"] for step in body["steps"])
    assert total == Decimal(body["charge"]["epsilon"])
    return body["answer"]["selected"]


@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
@pytest.mark.parametrize("utility", ["information_gain", "gini", "max", "mutual_information"])
def test_the_best_attribute_comes_back_by_name(
    table: Service, utility: str, sensitivity: str
) -> None:
    reply = ask(
        table,
        candidates=ATTRIBUTES,
        utilities=[{"name": utility}],
        sensitivity=sensitivity,
        epsilon=100_000 - 1,
    )
    assert selected(reply) == "sex"


@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
def test_the_most_common_value_comes_back_as_itself(table: Service, sensitivity: str) -> None:
    reply = ask(
        table,
        candidates={"values_of": "town"},
        utilities=[{"name": "count"}],
        sensitivity=sensitivity,
    )
    assert selected(reply) == "b"
    age = ask(table, candidates={"values_of": "age"}, utilities=[{"name": "count"}])
    assert selected(age) in ("[0,25)", "[25,50)", "[50,75)", "[75,100]")


@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
@pytest.mark.parametrize(
    ("objective", "utilities"),
    [
        ("pareto", RATES),
        ("weighted_sum", [{**RATES[0], "weight": 3}, {**RATES[1], "weight": 2.5}]),
        ("pareto", [{"weighted_sum": [{**RATES[0], "weight": 1}], "name": "mine"}, RATES[1]]),
        ("weighted_sum", RATES),
        ("single", RATES[:1]),
    ],
)
def test_the_best_tree_comes_back_by_its_index(
    table: Service, objective: str, utilities: list[Any], sensitivity: str
) -> None:
    reply = ask(
        table,
        candidates=TREES,
        utilities=utilities,
        objective=objective,
        sensitivity=sensitivity,
        epsilon=20_000,
    )
    assert selected(reply) == 2


def test_negative_weights_select_the_worst(table: Service) -> None:
    utilities = [{**RATES[0], "weight": -1}, {**RATES[1], "weight": -1}]
    reply = ask(
        table, candidates=TREES, utilities=utilities, objective="weighted_sum", sensitivity="local"
    )
    assert selected(reply) == 0


@pytest.mark.parametrize("objective", ["pareto", "weighted_sum"])
@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
def test_nodes_by_several_utilities(people: Service, objective: str, sensitivity: str) -> None:
    people.dataset("olga", cap={"epsilon": "100000", "delta": "0"})
    people.grant("olga", "triangle", "ana", "100000")
    names = ["degree", "egocentric_density"]
    weight = {} if objective == "pareto" else {"weight": 100}
    for kind in ({"kind": "selection"}, {"kind": "top_k", "k": 3}):
        reply = ask(
            people,
            "triangle",
            utilities=[{"name": name, **weight} for name in names],
            objective=objective,
            sensitivity=sensitivity,
            **kind,
        )
        chosen = selected(reply)
        best = {chosen} if kind["kind"] == "selection" else set(chosen)
        assert best <= {0, 1, 2}


def test_rescoring_compares_who_is_left_and_costs_the_same(people: Service) -> None:
    people.dataset("olga", cap={"epsilon": "100000", "delta": "0"})
    people.grant("olga", "triangle", "ana", "100000")
    query = {
        "kind": "top_k",
        "k": 3,
        "utilities": [{"name": "degree"}, {"name": "egocentric_density"}],
        "objective": "pareto",
        "sensitivity": "local",
        "draws": "peeled",
    }
    replies = [ask(people, "triangle", "1", **query, rescore=flag) for flag in (False, True)]
    steps = [reply.json()["steps"] for reply in replies]
    assert [selected(reply) and reply.json()["charge"]["epsilon"] for reply in replies] == ["1"] * 2
    assert [[step["epsilon"] for step in listed] for listed in steps] == [
        ["0.333333333", "0.333333334"]
    ] * 2
    for changes in ({"draws": "one_shot"}, {"objective": "single", "utilities": [RATES[0]]}):
        refused = ask(people, "triangle", "1", **{**query, **changes}, rescore=True)
        assert refused.status_code == 422, refused.text


def bad(**changes: Any) -> dict[str, Any]:
    return {"candidates": ATTRIBUTES, "utilities": [{"name": "max"}], **changes}


def deep(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"label": "yes"}
    for _ in range(depth):
        tree = {"attribute": "sex", "value": "f", "equal": tree, "other": {"label": "no"}}
    return tree


def wide(nodes: int) -> dict[str, Any]:
    level: list[Any] = [{"label": "yes"}] * nodes
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [{"attribute": "sex", "value": "f", "equal": a, "other": b} for a, b in pairs]
    return dict(level[0])


WEIGHTS = [{**RATES[0], "weight": 1}, {**RATES[1], "weight": 1}]


@pytest.mark.parametrize(
    "query",
    [
        bad(candidates={"attributes": ["sex"]}),
        bad(candidates={"attributes": ["sex", "sex"]}),
        bad(candidates={"attributes": ["sex", "paid"]}),
        bad(candidates={"attributes": ["sex", "shoe"]}),
        bad(candidates={"attributes": ["sex", "age"], "class_attribute": "shoe"}),
        bad(candidates={"attributes": ["sex", "age"], "values_of": "sex"}),
        bad(candidates={}), bad(candidates=[]), bad(candidates=None), bad(candidates="all"),
        bad(candidates={"values_of": "town"}), bad(candidates={"nodes": "all"}),
        bad(candidates={"values_of": "shoe"}, utilities=[{"name": "count"}]),
        bad(utilities=[{"name": "degree"}]), bad(utilities=[{"name": "max", "weight": 1}]),
        bad(utilities=[{"name": "max"}] * 2), bad(utilities=[{"name": "max"}], objective="pareto"),
        bad(candidates=TREES, utilities=WEIGHTS, objective="pareto"),
        bad(candidates=TREES, objective="weighted_sum",
            utilities=[{**RATES[0], "weight": 0}, {**RATES[1], "weight": 0.0}]),
        bad(candidates=TREES, objective="weighted_sum",
            utilities=[{**RATES[0], "weight": float("nan")}, WEIGHTS[1]]),
        bad(candidates=TREES, objective="weighted_sum",
            utilities=[{**RATES[0], "weight": 1e308}, WEIGHTS[1]]),
        bad(candidates=TREES, objective="weighted_sum",
            utilities=[{**RATES[0], "weight": True}, WEIGHTS[1]]),
        bad(candidates=TREES, objective="weighted_sum",
            utilities=[{"weighted_sum": WEIGHTS}, WEIGHTS[1]]),
        bad(candidates={**TREES, "trees": [RIGHT, RIGHT]}, utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT]}, utilities=RATES[:1]),
        bad(candidates={**TREES, "positive_class": "maybe"}, utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT, {"label": "maybe"}]}, utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT, {**RIGHT, "attribute": "shoe"}]},
            utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT, {**RIGHT, "seed": 1}]}, utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT, deep(200)]}, utilities=RATES[:1]),
        bad(candidates={**TREES, "trees": [RIGHT, wide(2**13)]}, utilities=RATES[:1]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_for_free(table: Service, query: dict[str, Any]) -> None:
    before = table.spent()
    reply = ask(table, **query)
    assert reply.status_code == 422, reply.text
    assert table.spent() == before


def test_a_tree_of_depth_10000_is_refused(table: Service) -> None:
    text = '{"attribute":"sex","value":"f","other":{"label":"no"},"equal":' * 10_000
    tree = text + '{"label":"yes"}' + "}" * 10_000
    body = '{"dataset":"people","epsilon":1,"query":{"kind":"selection","candidates":{"trees":['
    body += tree + '],"positive_class":"yes"},"utilities":[{"name":"true_positive_rate"}]}}'
    headers = {"Content-Type": "application/json"}
    assert table("ana", "POST", "/v1/queries", content=body, headers=headers).status_code == 422


def test_a_table_utility_on_a_graph_is_refused(people: Service) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    for query in (
        {"utilities": [{"name": "max"}]},
        {"utilities": [{"name": "count"}], "candidates": {"values_of": "sex"}},
        {"utilities": [{"name": "max"}], "candidates": ATTRIBUTES},
        {"utilities": RATES[:1], "candidates": TREES},
    ):
        reply = ask(people, "triangle", 0.1, **query)
        assert reply.status_code == 422, reply.text
        assert reply.json()["type"].endswith("unsupported-query")


def test_a_request_from_before_auto_is_equal_in_its_first_form() -> None:
    """The fields as a stored request of that time has them; named ones stay as they are."""
    body = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]}

    def first(**changes: Any) -> dict[str, Any]:
        query = QUERY.validate_json(json.dumps({**body, **changes}))
        return query.in_form(1).model_dump(mode="json")

    old = {"sensitivity": "shifted", "selector": "permute_and_flip", "draws": "peeled"}
    assert old.items() <= first().items()
    assert first() == first(**old)
    assert first(selector="exponential") == first(**{**old, "selector": "exponential"})
    single = QUERY.validate_json(json.dumps({"kind": "selection", "utilities": body["utilities"]}))
    assert "draws" not in single.in_form(1).model_dump()


def test_counts_come_back_with_values_and_intervals(table: Service) -> None:
    """ε = 500: noise of one has probability e⁻²⁵⁰, so the order and the values are exact."""
    query = {"kind": "top_k", "k": 2, "candidates": {"values_of": "town"}}
    answer = ask(table, **query, utilities=[{"name": "count"}]).json()["answer"]
    assert answer["selected"] == ["b", "?"]
    assert answer["ordered"] is True
    assert answer["values"] == {"value": [399, 1], "low": [399, 1], "high": [399, 1]}
    assert answer["resolved"] == {
        "sensitivity": "global",
        "selector": "laplace",
        "reason": "One change moves a utility by the same amount everywhere, so all ways agree.",
    }
    assert answer["order_preserving"] is True
    assert answer["confidence"] == 0.95


def test_a_set_comes_back_in_public_order(table: Service) -> None:
    query = {"kind": "top_k", "k": 2, "candidates": {"values_of": "town"}, "selector": "subset"}
    answer = ask(table, **query, utilities=[{"name": "count"}], sensitivity="local").json()[
        "answer"
    ]
    assert answer["ordered"] is False
    assert answer["selected"] in (["b", "?"], ["a", "b"], ["b", "c"])
    assert "values" not in answer
    assert answer["resolved"] == {"sensitivity": "local", "selector": "subset"}
