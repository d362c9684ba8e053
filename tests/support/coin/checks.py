"""What a service with the made-up kind does; ``test_made_up_kind`` runs it in another process."""

from __future__ import annotations

import json
import os
from typing import Any

import app
from app.service import speeds
from app.service.warm import stored_types, warm
from tests.support.browser import HOME, SignIn, sign_in, words
from tests.support.pageforms import forms, options
from tests.support.service import (
    Service,
    application,
    begun,
    client,
    fast_lane,
    people,
    service,
    settings,
)

__all__ = [
    "application",
    "begun",
    "client",
    "fast_lane",
    "people",
    "service",
    "settings",
    "sign_in",
]

# The copy of the application has one more kind of query, so the hash of its sources differs. With a
# new hash the service would measure the speed of the machine again, for half a minute. So it gets
# the hash of the original sources.
speeds._statements = lambda: os.environ["WORK_OF_THIS_TREE"]

COIN = {"kind": "coin", "side": "tails"}


def test_it_is_the_copy_that_is_tested() -> None:
    from app.queries import QUERY_KINDS

    assert QUERY_KINDS["coin"].folder.is_relative_to(app.__path__[0])
    assert list(QUERY_KINDS)[-1] == "coin"


def test_catalogue_and_document_show_it(people: Service) -> None:
    entries = people("ana", "GET", "/v1/catalogue").json()["queries"]
    (entry,) = [one for one in entries if one["kind"] == "coin"]
    assert entry["required"] == ["side"]
    assert entry["parameters"]["tosses"]["default"] == 7
    document = people.client.get("/openapi.json").json()
    assert document["components"]["schemas"]["Coin"]["properties"]["side"]["enum"]
    for path in ("/v1/queries", "/v1/quotes"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert body["examples"]["coin"]["value"]["query"]["kind"] == "coin"
    schema = document["components"]["schemas"]["QueryRequest"]["properties"]["query"]
    assert "Coin" in json.dumps(schema)
    formats = document["paths"]["/v1/queries/{query_id}"]["get"]["parameters"]
    (named,) = [one for one in formats if one["name"] == "format"]
    assert "face" in named["schema"]["enum"]


def test_it_is_quoted_asked_and_listed_in_the_history(people: Service) -> None:
    people.dataset("olga", name="web")
    people.grant("olga", "web", "ana", "1")
    body = {"dataset": "web", "epsilon": "0.25", "query": COIN}
    assert people("ana", "POST", "/v1/quotes", json=body).json()["accuracy"] == {"wrong_side": 0.5}
    target = {"dataset": "web", "target": {"wrong_side": 0.5}, "query": COIN}
    assert people("ana", "POST", "/v1/quotes", json=target).json()["charge"]["epsilon"] == "1"
    reply = people("ana", "POST", "/v1/queries", json=body).json()
    assert reply["answer"] == {
        "question": "Does the coin of web version 1 show tails?",
        "shows": "tails",
    }
    assert reply["query"] == {**COIN, "tosses": 7}
    path = f"/v1/queries/{reply['id']}?format=face"
    assert people("ana", "GET", path).text == "<tails>"
    history = people("ana", "GET", "/v1/budgets/web/history?by=mechanism").json()["items"]
    assert [one["label"] for one in history] == ["coin: tails"]


def test_pages_show_its_form_its_lines_and_its_answer(people: Service, sign_in: SignIn) -> None:
    people.dataset("olga", name="web")
    people.grant("olga", "web", "ana", "1")
    browser = sign_in("ana")
    page = browser.get("/ui/ask", dataset="web", kind="coin").text
    assert "coin" in options(page, "kind")
    question: Any = forms(page)["POST /ui/ask/quote"]
    assert question.fields["tosses"] == ["7"]
    assert options(page, "side") == ["heads", "tails"]
    question.put("epsilon", "0.5")
    quoted = browser.client.request(
        question.method, question.action, data=question.fields, headers={"Origin": HOME}
    ).text
    assert "purse.coin(" in quoted
    assert "wrong side" in words(quoted)
    body = {"dataset": "web", "epsilon": "0.5", "query": COIN}
    reply = people("ana", "POST", "/v1/queries", json=body).json()
    answer = browser.get(f"/ui/queries/{reply['id']}").text
    assert "The coin shows &lt;tails&gt;." in answer
    assert "coin: tails" in words(browser.get("/ui/queries").text)
    offers = sign_in("olga").post("/ui/grants/web", epsilon="1", do="preview").text
    assert "toss of a coin" in words(offers)


def test_the_warm_up_asks_it(monkeypatch: Any) -> None:
    from app.queries import QUERY_KINDS
    from app.queries.coin.body import Coin

    calls = []
    monkeypatch.setattr(Coin, "compute", lambda query, context: calls.append((query, context)))
    monkeypatch.setattr("app.service.warm.QUERY_KINDS", {"coin": QUERY_KINDS["coin"]})
    warm()
    assert len(calls) == len(stored_types())
