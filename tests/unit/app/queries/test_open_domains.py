"""Open domains over HTTP: groups above the threshold, conditions, and 422 everywhere else."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from app.contract.datasets import AttributeFacts, Facts
from app.dashboard.templating import ENVIRONMENT
from app.queries import QUERY_KINDS
from app.usecases.answer_files import FORMS
from privypurse import top_k
from privypurse.answers.answer import TopK
from privypurse.answers.tables import Table
from tests.support.agents import Agent
from tests.support.service import Service

DESCRIPTION: dict[str, Any] = {
    "name": "visits",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
        {"name": "code", "kind": "categorical", "values": "open", "missing": "none"},
        {"name": "age", "kind": "numeric", "bounds": [0, 100]},
    ],
    "class_attribute": "sex",
    "cap": {"epsilon": "100000000", "delta": "0.5"},
}
#: The codes of visits. Answers list them in the order of their bytes: "A10", "E11", "É1".
CODES = ["E11"] * 60 + ["A10"] * 30 + ["É1"] * 20 + ["Q99x"]
ROWS = "code,sex,age\n" + "".join(f"{c},{'fm'[i % 3 == 0]},{i % 90}\n" for i, c in enumerate(CODES))
DELTA = "0.000001"


@pytest.fixture
def visits(people: Service) -> Service:
    reply = people("olga", "POST", "/v1/datasets", json=DESCRIPTION)
    assert reply.status_code == 201, reply.text
    assert people.upload("olga", "visits", ROWS.encode()).status_code == 201
    limit = {"epsilon": "90000000", "delta": "0.1"}
    path = "/v1/datasets/visits/budgets/ana"
    assert people("olga", "PUT", path, json=limit).status_code == 200
    return people


def ask(shop: Service, epsilon: str = "1000000", path: str = "queries", **query: Any) -> Any:
    body = {"dataset": "visits", "epsilon": epsilon, "query": query}
    return shop("ana", "POST", f"/v1/{path}", json=body)


def counts(reply: Any) -> dict[tuple[str, ...], int]:
    assert reply.status_code == 201, reply.text
    answer = reply.json()["answer"]
    labels = zip(*answer["by"].values(), strict=True)
    return dict(zip(labels, answer["cells"]["count"]["value"], strict=True))


def test_agents_get_examples_that_fit_the_table(visits: Service) -> None:
    """A kind whose examples need public levels has none here."""
    described = Agent(visits, visits.keys["ana"]).call("describe", dataset="visits")
    examples = {one["kind"]: one["example"] for one in described["kinds"]}
    assert examples.keys() == {"statistic", "table", "top_k"}
    for query in examples.values():
        assert ask(visits, path="quotes", **query).status_code == 200


def test_groups_come_back_above_the_threshold_in_public_order(visits: Service) -> None:
    reply = ask(visits, kind="table", by=["code"], delta=DELTA)
    assert list(counts(reply).items()) == [(("A10",), 30), (("E11",), 60), (("É1",), 20)]
    answer, body = reply.json()["answer"], reply.json()
    assert (answer["open"], answer["threshold"]) == (True, 2)
    assert "totals" not in answer
    assert (body["charge"]["epsilon"], body["charge"]["delta"]) == ("1000000", DELTA)
    assert sum(float(step["delta"]) for step in body["steps"]) == pytest.approx(float(DELTA))
    both = counts(ask(visits, kind="table", by=["sex", "code"], delta=DELTA))
    expected = {
        (sex, code): n
        for sex in "fm"
        for code in ("A10", "E11", "É1")
        if (n := sum(c == code and "fm"[i % 3 == 0] == sex for i, c in enumerate(CODES))) > 1
    }
    assert list(both.items()) == list(expected.items())


def test_groups_have_sums_means_and_variances(visits: Service) -> None:
    ages: dict[str, list[int]] = {}
    for i, code in enumerate(CODES):
        if i % 3 == 0:
            ages.setdefault(code, []).append(i % 90)
    of_age = [{"name": name, "attribute": "age"} for name in ("sum", "mean", "variance")]
    where = {"attribute": "sex", "in": ["m"]}
    query = {"kind": "table", "by": ["code"], "delta": DELTA, "where": where}
    reply = ask(visits, aggregates=of_age, **query).json()
    answer = reply["answer"]
    codes = answer["by"]["code"]
    assert codes == ["A10", "E11", "É1"]
    for name, exact in (("sum", np.sum), ("mean", np.mean), ("variance", np.var)):
        cells = answer["cells"][f"{name}(age)"]
        for code, value, low, high in zip(codes, *cells.values(), strict=True):
            assert value == pytest.approx(exact(ages[code]), rel=1e-3, abs=1e-2)
            # The noise is tiny at this ε. One interval of 95 % in twenty misses the truth, but by
            # less than 0.01.
            assert low <= value <= high
            assert low - 0.01 <= exact(ages[code]) <= high + 0.01
    assert [step["delta"] for step in reply["steps"]].count(DELTA) == 1
    assert sum(Decimal(step["epsilon"]) for step in reply["steps"]) == 1_000_000
    assert {row["by"] for row in answer["noise"]} == {None}
    table = Table.read(reply, {})
    assert table.to_pandas()["sum(age)"]["value"].tolist() == answer["cells"]["sum(age)"]["value"]
    clamped = ask(visits, aggregates=of_age[:1], non_negative=True, **query).json()["answer"]
    assert "raw" in clamped["cells"]["sum(age)"]
    # A group is shown only if its noisy count reaches the threshold. So a request that names no
    # count measures and shows it too.
    assert clamped["cells"]["count"]["value"] == [len(ages[code]) for code in codes]


def test_a_quote_says_the_threshold_and_small_groups_stay_away(visits: Service) -> None:
    quote = ask(visits, "1", "quotes", kind="table", by=["code"], delta=DELTA).json()
    assert quote["accuracy"]["threshold"] == 15
    assert (quote["charge"]["epsilon"], quote["charge"]["delta"]) == ("1", DELTA)
    few = {"attribute": "code", "in": ["Q99x"]}
    assert counts(ask(visits, "1", kind="table", by=["code"], delta=DELTA, where=few)) == {}


def test_conditions_list_texts_whether_they_occur_or_not(visits: Service) -> None:
    count = {"kind": "statistic", "statistic": "count"}
    for texts, number in ((["É1", "A10", "never"], 50), (["Q99x"], 1), (["none"], 0), ([], 0)):
        where = {"attribute": "code", "in": texts}
        assert ask(visits, **count, where=where).json()["answer"]["value"] == number
        others = ask(visits, **count, where={"not": where}).json()["answer"]["value"]
        assert others == len(CODES) - number
    where = {"attribute": "code", "in": ["E11"]}
    table = ask(visits, kind="table", by=["sex"], where=where).json()["answer"]
    assert table["cells"]["count"]["value"] == [40, 20]


TOP: dict[str, Any] = {
    "kind": "top_k",
    "k": 2,
    "candidates": {"values_of": "code"},
    "utilities": [{"name": "count"}],
    "delta": DELTA,
}
REFUSED: list[dict[str, Any]] = [
    {"kind": "table", "by": ["code"]},  # A table by an attribute without listed values needs δ.
    # The values of sex are listed, so a delta would be charged for nothing.
    {"kind": "table", "by": ["sex"], "delta": DELTA},
    {
        "kind": "table",
        "by": ["code"],
        "delta": DELTA,
        "aggregates": [{"name": "quantiles", "attribute": "age"}],
    },
    {"kind": "table", "by": ["code"], "delta": DELTA, "aggregates": [{"name": "persons"}]},
    {"kind": "table", "by": ["code"], "delta": DELTA, "totals": {"measured": [[]], "share": "0.5"}},
    {"kind": "table", "by": [{"attribute": "code", "groups": {"x": ["A10"]}}], "delta": DELTA},
    {"kind": "table", "where": {"attribute": "code", "from": 3}},
    {"kind": "table", "where": {"attribute": "code", "in": [3]}},
    {"kind": "table", "where": {"attribute": "code", "in": ["x"] * 101}},
    {"kind": "tree", "attributes": ["code"]},
    {"kind": "tree", "attributes": ["age"], "class_attribute": "code"},
    {"kind": "distance", "target": "code"},
    {"kind": "distance"},
    {"kind": "clustering", "clusters": 2, "encoding": "one_hot"},
    {"kind": "statistic", "statistic": "sum", "attribute": "code"},
    {
        "kind": "selection",
        "candidates": {"attributes": ["code", "age"]},
        "utilities": [{"name": "information_gain"}],
    },
    {"kind": "selection", "candidates": {"values_of": "code"}, "utilities": [{"name": "count"}]},
    {**TOP, "delta": "0"},
    # The values of sex are listed, so a delta would be charged for nothing.
    {**TOP, "candidates": {"values_of": "sex"}},
    {**TOP, "utilities": [{"name": "count", "weight": 2}]},
    {**TOP, "utilities": [{"name": "information_gain"}]},
    {**TOP, "objective": "pareto"},
    {**TOP, "sensitivity": "local"},
    {**TOP, "selector": "permute_and_flip"},
    {**TOP, "draws": "one_shot"},
    {**TOP, "rescore": True},
    {**TOP, "stages": {"shortlist": 5}},
]


def test_everything_else_is_unsupported(visits: Service) -> None:
    for query in REFUSED:
        reply = ask(visits, **query)
        assert reply.status_code == 422, query
        assert reply.json()["type"].endswith("unsupported-query"), query
        assert "Q99x" not in reply.text
        assert "E11" not in reply.text


@pytest.mark.parametrize("query", [{"kind": "table", "by": ["code"]}, {**TOP, "delta": "0"}])
def test_groups_by_open_attributes_take_no_rho(visits: Service, query: dict[str, Any]) -> None:
    body = {"dataset": "visits", "rho": "0.1", "query": query}
    reply = visits("ana", "POST", "/v1/quotes", json=body)
    assert (reply.status_code, reply.json()["type"]) == (422, "/problems/unsupported-query")


def test_the_most_frequent_values_come_back_in_order_above_the_threshold(visits: Service) -> None:
    reply = ask(visits, **TOP)
    body, answer = reply.json(), reply.json()["answer"]
    assert (
        answer["question"] == "Which 2 values of code in visits version 1 have the highest count?"
    )
    assert (answer["selected"], answer["values"]["value"]) == (["E11", "A10"], [60, 30])
    assert (answer["ordered"], answer["order_preserving"]) == (True, True)
    assert body["charge"]["delta"] == DELTA
    assert sum(float(step["delta"]) for step in body["steps"]) == pytest.approx(float(DELTA))
    # A value that occurs in only one record is not answered, even where k has room for it.
    every = ask(visits, **{**TOP, "k": 1000}).json()["answer"]
    assert every["selected"] == ["E11", "A10", "É1"]
    text = ENVIRONMENT.get_template("top_k/answer.html")
    page = text.render(answer=every, drawing=QUERY_KINDS["top_k"].draw(every))
    assert "only those whose noisy count reaches 2 can be selected" in page
    assert TopK.read(body, {}).rows()[0] == {"selected": "E11", "value": 60, "low": 60, "high": 60}
    query = top_k(2, "count", candidates=TOP["candidates"], delta=Decimal(DELTA))
    assert query.body == TOP


def test_a_quote_of_open_values_says_the_threshold_and_an_empty_answer_is_one(
    visits: Service,
) -> None:
    quote = ask(visits, "1", "quotes", **TOP).json()
    assert quote["accuracy"]["threshold"] == 15
    assert quote["resolved"] == {"sensitivity": "global", "selector": "laplace"}
    # The error of up to 1,000 noisy counts together is at most m = 10 with 95 %: this is the least
    # m with 2·p^(m+1)/(1+p) ≤ 1 − 0.95^(1/1000) for p = 1/e.
    assert (quote["accuracy"]["value_error"], quote["accuracy"]["score_below_best"]) == (10, 20)
    target = {"dataset": "visits", "target": {"score_below_best": 3}, "query": TOP}
    assert visits("ana", "POST", "/v1/quotes", json=target).status_code == 422
    # At this ε a count must exceed a threshold above 10⁷ to be answered, which no noise reaches.
    reply = ask(visits, "0.000001", **TOP).json()
    answer = reply["answer"]
    assert (answer["selected"], answer["values"]["value"]) == ([], [])
    assert FORMS["csv"].write(reply)
    page = ENVIRONMENT.get_template("top_k/answer.html")
    page.render(answer=answer, drawing=QUERY_KINDS["top_k"].draw(answer))


def test_the_form_has_a_delta_for_open_values_alone() -> None:
    closed = AttributeFacts("sex", ("f", "m"), None)
    code = AttributeFacts("code", (), None, is_open=True)
    form = QUERY_KINDS["top_k"].form
    for attributes, variant, expected in (
        ((closed, code), "values", True),
        ((closed, code), "attributes", False),
        ((closed,), "values", False),
    ):
        facts = Facts("visits", "table", "add_remove", attributes, "sex")
        assert ("delta" in [one.name for one in form.fields(facts, variant)]) == expected


def test_no_public_text_holds_a_value(visits: Service) -> None:
    described = visits("ana", "GET", "/v1/datasets/visits").json()
    assert described["attributes"][1]["values"] == "open"
    mock = visits("ana", "GET", "/v1/datasets/visits/mock?rows=50")
    page = visits("ana", "GET", "/v1/catalogue")
    for text in (json.dumps(described), mock.text, page.text):
        assert not any(code in text for code in ("E11", "A10", "Q99x"))
    assert visits.upload("olga", "visits", mock.content).status_code == 201


def test_the_class_attribute_is_not_open(people: Service) -> None:
    body = {**DESCRIPTION, "class_attribute": "code"}
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 422


def test_pages_files_and_the_client_show_a_row_per_group(visits: Service) -> None:
    reply = ask(visits, kind="table", by=["sex", "code"], delta=DELTA).json()
    kind, answer = QUERY_KINDS["table"], reply["answer"]
    page = ENVIRONMENT.get_template("table/answer.html")
    text = page.render(answer=answer, drawing=kind.draw(answer))
    assert text.count("<tr>") == 1 + len(answer["by"]["code"])
    assert "heat" not in text
    lines = FORMS["csv"].write(reply).decode().splitlines()
    assert lines[1].startswith("f,A10,")
    table = Table.read(reply, {})
    assert [row["code"] for row in table.rows()] == answer["by"]["code"]
    assert table.to_arrow().num_rows == len(answer["by"]["code"])
    none = {
        **reply,
        "answer": {
            **answer,
            "by": {"code": []},
            "cells": {"count": {key: [] for key in ("value", "low", "high")}},
        },
    }
    assert Table.read(none, {}).rows() == []
    assert FORMS["csv"].write(none)
    page.render(answer=none["answer"], drawing=kind.draw(none["answer"]))
