"""The pages of an analyst: budgets, ledger and queries, and that other users cannot see them."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from tests.support.browser import SignIn, bars
from tests.support.service import Service

QUERY = {"kind": "selection", "utilities": [{"name": "degree"}]}


def ask(people: Service, name: str, who: str = "ana", epsilon: str = "0.25") -> Any:
    query = QUERY | {"selector": "permute_and_flip"}
    body = {"dataset": name, "epsilon": epsilon, "query": query}
    reply = people(who, "POST", "/v1/queries", json=body)
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.fixture
def shop(people: Service) -> Service:
    """A service in which the analyst ana has grants on two datasets, and ben on one of them."""
    people.user("ben", "analyst")
    for name in ("one", "two"):
        people.dataset("olga", name=name)
        people.grant("olga", name, "ana", "1")
    people.grant("olga", "two", "ben", "1")
    return people


def test_without_an_allowance_the_page_says_what_to_do(sign_in: SignIn) -> None:
    browser = sign_in("ana")
    assert "No allowance yet" in browser.text("/ui/budgets")
    assert "No query yet" in browser.text("/ui/queries")
    assert "The first one is written" in browser.text("/ui/ledger")


def test_a_card_says_what_is_left_and_for_how_long(shop: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    assert "At ε 0.1 per answer: about 10 more answers" in browser.text("/ui/budgets")
    ask(shop, "one")
    text = browser.text("/ui/budgets")
    assert "one open ε 0.75 left of 1" in text
    assert "At ε 0.25 per answer, as you usually spend: about 3 more answers" in text
    assert "two open ε 1 left of 1" in text
    assert "Over all datasets" not in text
    shop("root", "PUT", "/v1/users/ana/budget", json={"epsilon": "1.5"})
    assert "as long as the limit" not in text
    text = browser.text("/ui/budgets")
    assert "ε 1.25 left of 1.5" in text
    assert "3 more answers, as long as the limit over all datasets lasts" in text


def test_the_bell_counts_and_its_page_shows_them(shop: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    assert "for you" not in browser.text("/ui/budgets")
    assert "Nothing to tell" in browser.text("/ui/notices")
    ask(shop, "one", epsilon="0.9")
    assert "Notices 1 for you" in browser.text("/ui/budgets")
    assert "Less than 15 % of your allowance for one is left." in browser.text("/ui/notices")
    assert "Version 1 of two is ready" in sign_in("olga").text("/ui/notices")


def test_a_key_for_a_notebook_has_a_limit_of_its_own(shop: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    refused = browser.post("/ui/keys", epsilon="x", until="2001-01-01")
    assert (refused.status_code, "not a decimal number" in refused.text) == (422, True)
    fields = {"epsilon": "0.5", "delta": "", "until": "2100-01-01", "datasets": ["one"]}
    page = browser.post("/ui/keys", **fields)
    issued = re.search(r"pp_[0-9a-f]{16}_[0-9a-f]{64}", page.text)
    assert issued is not None
    shop.keys["notebook"] = issued[0]
    ask(shop, "one", who="notebook")
    text = browser.text("/ui/keys")
    assert "works ε 0.25 left of ε 0.5 only one until 2100-01-01 00:00" in text
    assert "works none" in text
    with_key = sign_in("notebook")
    text = with_key.text("/ui/budgets")
    assert "It has a limit of its own, over all datasets: ε 0.25 left of 0.5." in text
    assert "two" not in text
    assert "which issues no keys" in with_key.text("/ui/keys")
    assert with_key.post("/ui/keys").status_code == 403
    assert "ε 0.25 left of ε 0.5" in sign_in("ada").text("/ui/users/ana")


def test_a_budget_that_counts_in_rho_names_the_way_that_admits(
    people: Service, sign_in: SignIn
) -> None:
    promise = {"epsilon": "0.5", "composition_delta": "0.000001"}
    people.dataset("olga", name="one", cap=promise)
    granted = sign_in("olga").post("/ui/grants/one", analyst="ana", do="grant", **promise)
    assert granted.status_code == 200
    browser = sign_in("ana")
    page = browser.get("/ui/budgets/one").text
    assert bars(page) == ["100 percent of ε is left", "100 percent of ρ is left"]
    text = browser.text("/ui/budgets/one")
    assert "ρ 0.00664152435666 left of 0.00664152435666" in text
    assert "now by ε up to 0.5, and beyond that by ρ" in text
    assert "except for a share of the probability of 0.000001" in text
    for _ in range(25):
        ask(people, "one", epsilon="0.02")
    assert bars(browser.get("/ui/budgets/one").text) == [
        "24 percent of ρ is left",
        "0 percent of ε is left",
    ]
    text = browser.text("/ui/budgets/one")
    assert "now by ρ alone" in text
    assert "exhausted" not in text
    assert "The largest ε of a single query is 0.05" in text
    ask(people, "one", epsilon="0.02")
    text = browser.text("/ui/budgets")
    assert "Only ρ admits queries now" in text
    (account,) = people("ana", "GET", "/v1/budgets").json()["items"]
    rest = f"ρ {account['remaining']['rho']}"
    assert f"{rest} left of 0.00664152435666" in text
    assert f"its ε is at most {account['largest_epsilon']}" in text
    assert f"You have ε 0 {rest} left" in browser.text("/ui/ask?dataset=one")
    spent = f"(δ for many queries 0.000001) ε 0.52 ρ {account['spent']['rho']}"
    assert spent in sign_in("olga").text("/ui/grants/one")
    # The page of an allowance that counts in ε alone shows one bar, for what is left of ε.
    people.dataset("olga", name="pure")
    people.grant("olga", "pure", "ana", "1")
    assert bars(browser.get("/ui/budgets/pure").text) == ["100 percent of ε is left"]
    assert people("otto", "GET", "/v1/ledger/verification").json()["first_bad"] is None


def test_after_gaussian_noise_no_page_promises_without_exception(
    people: Service, sign_in: SignIn
) -> None:
    promise = {"epsilon": "5", "composition_delta": "0.000001", "gaussian": True}
    people.dataset("olga", name="one", cap=promise)
    path = "/v1/datasets/one/budgets/ana"
    assert people("olga", "PUT", path, json=promise).status_code == 200
    browser = sign_in("ana")
    assert "that holds without exception" in browser.text("/ui/budgets/one")
    body = {"dataset": "one", "rho": "0.1", "query": QUERY | {"kind": "top_k", "k": 1}}
    dear = json.dumps(body | {"rho": "2"})
    refused = browser.post("/ui/ask", request=dear, key="k").text
    assert "The allowance for this dataset has too little rho left for this charge" in refused
    assert 'A question of at most <span class="amount">ρ 0.4630' in refused
    id = people("ana", "POST", "/v1/queries", json=body).json()["id"]
    text = browser.text(f"/ui/queries/{id}")
    assert "Charged: ρ 0.1" in text
    assert "None" not in text
    text = browser.text("/ui/budgets/one")
    assert "the exception never goes away" in text
    assert "without exception" not in text
    for page in ("/ui/budgets", "/ui/queries", "/ui/ledger"):
        assert "None" not in browser.text(page)
    charged = [row for row in csv.DictReader(browser.get("/ui/ledger.csv").text.splitlines())
               if row["kind"] == "charge"]  # fmt: skip
    assert [(row["epsilon"], row["rho"]) for row in charged] == [("", "0.1")]


def test_an_exhausted_budget_says_what_happens_next(shop: Service, sign_in: SignIn) -> None:
    ask(shop, "one", epsilon="1")
    browser = sign_in("ana")
    assert "exhausted" in browser.text("/ui/budgets")
    text = browser.text("/ui/budgets/one")
    assert "This budget is spent" in text
    assert "answered again for free" in text
    assert "more has to come from the dataset's owner" in text.lower()


def test_how_a_budget_went_is_the_series_of_the_api(shop: Service, sign_in: SignIn) -> None:
    ask(shop, "one")
    ask(shop, "one", epsilon="0.125")
    page = sign_in("ana").get("/ui/budgets/one").text
    assert "<svg" in page
    for by in ("day", "mechanism"):
        series = shop("ana", "GET", f"/v1/budgets/one/history?by={by}").json()["items"]
        for point in series:
            label = re.escape(point["label"].replace("_", " "))
            row = re.search(rf'scope="row">{label}</th>(.*?)</tr>', page, re.S)
            assert row is not None
            assert f">{point['queries']}<" in row[1]
            assert point["charged"]["epsilon"] in row[1]
    assert "0.625" in page
    assert "At the pace of ε 0.375 in 1" in page
    assert "nothing is left on" in page
    # The time axis of a budget that is only hours old shows times of day. By days alone all of its
    # points would be one line at the left.
    assert len(re.findall(r">\d\d:\d\d</text>", page)) > 1


def test_the_series_by_mechanism(shop: Service) -> None:
    """An unspecified mechanism appears as the one that was used."""
    ask(shop, "one")
    edges = {"kind": "statistic", "statistic": "edges"}
    top = {"kind": "top_k", "k": 1, "utilities": [{"name": "degree"}], "sensitivity": "global"}
    for query in (edges, {**edges, "mechanism": "ladder"}, edges, top):
        body = {"dataset": "one", "epsilon": "0.125", "query": query}
        assert shop("ana", "POST", "/v1/queries", json=body).status_code == 201
    points = shop("ana", "GET", "/v1/budgets/one/history?by=mechanism").json()["items"]
    assert {p["label"]: (p["queries"], p["charged"]["epsilon"]) for p in points} == {
        "selection: permute_and_flip: auto": (1, "0.25"),
        "statistic: ladder": (1, "0.125"),
        "statistic: laplace": (2, "0.25"),
        "top_k: auto: global": (1, "0.125"),
    }


@pytest.mark.parametrize(
    "path", ["/ui/budgets/{}", "/ui/queries?dataset={}", "/ui/ledger?dataset={}"]
)
def test_of_other_datasets_there_is_nothing(shop: Service, sign_in: SignIn, path: str) -> None:
    ask(shop, "one")
    browser = sign_in("ben")
    theirs, absent = browser.get(path.format("one")), browser.get(path.format("absent"))
    assert theirs.status_code == absent.status_code
    strip = re.compile(r"<code>\w{16}</code>|one|absent")
    assert strip.sub("", theirs.text) == strip.sub("", absent.text)


class TestLedger:
    def test_entries_by_filter(self, shop: Service, sign_in: SignIn) -> None:
        ask(shop, "one")
        ask(shop, "two")
        browser = sign_in("ana")
        assert browser.get("/ui/ledger").text.count("<tr>") == 1 + 4
        assert browser.get("/ui/ledger", dataset="one", kind="").text.count("<tr>") == 1 + 2
        assert browser.get("/ui/ledger", kind="charge").text.count("<tr>") == 1 + 2
        assert browser.get("/ui/ledger", kind="charge", dataset="two").text.count("<tr>") == 1 + 1
        assert "fits these filters" in browser.text("/ui/ledger", kind="freeze")
        assert browser.get("/ui/ledger", kind="nonsense").status_code == 422
        assert browser.get("/ui/ledger", dataset="\0").status_code == 422
        auditor = sign_in("otto")
        assert auditor.get("/ui/ledger", analyst="ben").text.count("<tr>") == 1 + 1
        assert auditor.get("/ui/ledger").text.count("<tr>") == 1 + 9

    def test_the_filters_of_the_api(self, shop: Service) -> None:
        ask(shop, "two", "ben")
        listed = shop("otto", "GET", "/v1/ledger?analyst=ben&kind=charge").json()["items"]
        assert [(e["analyst"], e["kind"], e["account"]) for e in listed] == [
            ("ben", "charge", "analyst")
        ]
        assert shop("ana", "GET", "/v1/ledger?analyst=ben").json()["items"] == []
        assert shop("otto", "GET", "/v1/ledger?kind=x").status_code == 422

    def test_paging(self, shop: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.dashboard.views.ledger.PAGE", 2)
        for _ in range(3):
            ask(shop, "one", epsilon="0.1")
        browser = sign_in("ana")
        path, seen = "/ui/ledger?kind=charge", []
        while True:
            page = browser.get(path).text
            seen += re.findall(r"/ui/queries/([0-9a-f-]{36})", page)
            older = re.search(r'href="([^"]+cursor=[^"]+)"', page)
            if older is None:
                break
            path = older[1].replace("&amp;", "&")
        assert len(seen) == len(set(seen)) == 3

    def test_csv_has_every_entry(
        self, shop: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.usecases.pages.PAGE", 2)
        for _ in range(3):
            ask(shop, "one", epsilon="0.1")
        reply = sign_in("ana").client.get("/ui/ledger.csv?kind=&dataset=one")
        assert reply.headers["content-type"] == "text/csv; charset=utf-8"
        assert "attachment" in reply.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(reply.text)))
        listed = shop("ana", "GET", "/v1/ledger?dataset=one").json()["items"]
        assert [row["head"] for row in rows] == [entry["head"] for entry in listed]
        assert len(rows) == 4


class TestQueries:
    def test_an_answer_is_for_its_analyst_alone(self, shop: Service, sign_in: SignIn) -> None:
        answered = ask(shop, "two")
        path = f"/ui/queries/{answered['id']}"
        assert "Left on two after it" in sign_in("ana").text(path)
        for who in ("olga", "otto"):
            text = sign_in(who).text(path)
            assert "Left on" not in text
            assert "selected" not in text
            assert "ana" in text
        for who in ("ben", "ada"):
            assert sign_in(who).get(path).status_code in (403, 404)
        assert sign_in("ben").get(path).status_code == 404
        assert sign_in("ana").get("/ui/queries/absent").status_code == 404

    def test_the_history_is_that_of_the_caller(self, shop: Service, sign_in: SignIn) -> None:
        first, second = ask(shop, "two"), ask(shop, "two", "ben")
        assert first["id"] in sign_in("ana").get("/ui/queries").text
        assert second["id"] not in sign_in("ana").get("/ui/queries").text
        for who in ("olga", "otto"):
            page = sign_in(who).get("/ui/queries", dataset="two").text
            assert first["id"] in page
            assert second["id"] in page

    def test_cancelling_too_late_changes_nothing(self, shop: Service, sign_in: SignIn) -> None:
        answered = ask(shop, "one")
        reply = sign_in("ana").post(f"/ui/queries/{answered['id']}/cancel")
        assert (reply.status_code, "Too late" in reply.text) == (409, True)
        assert sign_in("ana").post("/ui/queries/absent/cancel").status_code == 404
