"""Every kind of query from the form to the answer, by submitting the forms of the pages."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.dashboard.views import ask
from app.queries import QUERY_KINDS
from privypurse import client
from privypurse.connection import Connection
from tests.support.browser import HOME, Browser, SignIn, words
from tests.support.pageforms import PageForm, forms, options
from tests.support.patience import WAIT
from tests.support.service import Service

pytestmark = pytest.mark.long

LEVELS = {"sky": ["sun", "rain", "fog"], "coat": ["yes", "no"], "mood": ["low", "high <b>"]}
TABLE: dict[str, Any] = {
    "name": "weather",
    "kind": "table",
    "attributes": [
        *({"name": n, "kind": "categorical", "values": v} for n, v in LEVELS.items()),
        {"name": "heat", "kind": "numeric", "bounds": [0, 40], "bins": 4},
        {"name": "kind", "kind": "categorical", "values": ["a", "b"]},
    ],
    "class_attribute": "kind",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "cap": {"epsilon": "100000", "delta": "0.01"},
}
ROWS = "sky,coat,mood,heat,kind\n" + "".join(
    f"{'rain' if i % 2 else 'sun'},{'yes' if i % 2 else 'no'},{'low' if i % 3 else 'high <b>'},"
    f"{i % 40},{'a' if i % 2 else 'b'}\n"
    for i in range(200)
)
PREFIX = {
    "name": "steps",
    "kind": "prefix",
    "neighbouring": "prefix",
    "public_values": [0, 10, 20, 50],
    "cap": {"epsilon": "100000"},
}
#: The values that the test types into required fields of forms that have no default.
FILLED = {"k": "2", "clusters": "2", "quantile": "0.25", "candidates.trees": json.dumps(
    [{"label": "a"}, {"attribute": "sky", "value": "sun", "equal": {"label": "b"},
                      "other": {"label": "a"}}])}  # fmt: skip


@pytest.fixture
def offered(people: Service) -> Service:
    people.dataset("olga", name="web", cap={"epsilon": "100000", "delta": "0.01"})
    for body, records, media in ((TABLE, ROWS.encode(), "text/csv"), (PREFIX, None, "")):
        assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
        if records:
            assert people.upload("olga", body["name"], records, media).status_code == 201
    for name in ("web", "weather"):
        path = f"/v1/datasets/{name}/budgets/ana"
        assert people("olga", "PUT", path, json={"epsilon": "1000", "delta": "0.001"}).is_success
    return people


def send(browser: Browser, form: PageForm, **headers: str) -> Any:
    """Submit a form with the values of the page."""
    headers["Origin"] = HOME
    return browser.client.request(
        form.method, form.action, data=form.fields, headers=headers, follow_redirects=True
    )


def every_form(browser: Browser, dataset: str) -> Iterator[tuple[str, str, PageForm]]:
    page = browser.get("/ui/ask", dataset=dataset).text
    for kind in options(page, "kind"):
        of_kind = browser.get("/ui/ask", dataset=dataset, kind=kind).text
        for form in options(of_kind, "form") or [""]:
            path = {"dataset": dataset, "kind": kind, "form": form}
            yield kind, form, forms(browser.get("/ui/ask", **path).text)["POST /ui/ask/quote"]


def lines(page: str, program: str) -> str:
    """The text of the curl or Python program on the page."""
    match = re.search(rf"<summary>{program}</summary><pre[^>]*>(.*?)</pre>", page, re.S)
    assert match is not None
    return html.unescape(match[1])


def run_python(service: Service, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python program of the page unchanged, over the connection of the test."""

    def received(request: httpx.Request) -> httpx.Response:
        reply = service.client.request(
            request.method,
            request.url.raw_path.decode(),
            content=request.content,
            headers=dict(request.headers),
        )
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    def connected(url: str, key: str, patience: float, **_: Any) -> Connection:
        assert url == HOME
        return Connection(url, key, patience=patience, transport=httpx.MockTransport(received))

    monkeypatch.setattr(client, "Connection", connected)
    monkeypatch.setenv("KEY", service.keys["ana"])
    exec(compile(lines(page, "Python"), "lines", "exec"), {})


def run_curl(service: Service, page: str) -> Any:
    """Send the request of the curl command; return its body and the query that it created."""
    words = shlex.split(lines(page, "curl"))
    assert words[:3] == ["curl", "-sS", f"{HOME}/v1/queries"]
    body = words[words.index("-d") + 1]
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    headers["Authorization"] = headers["Authorization"].replace("$KEY", service.keys["ana"])
    headers |= WAIT  # The first query of a kind may be slow, because it compiles kernels.
    sent = service.client.post("/v1/queries", content=body.encode(), headers=headers)
    return json.loads(body), sent.json()


@pytest.mark.parametrize("dataset", ["web", "weather"])
def test_every_kind_is_quoted_and_answered_as_its_form_stands(
    offered: Service, sign_in: SignIn, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query is sent by the button, by the curl command and by the Python program."""
    browser, tried = sign_in("ana"), set()
    for kind, form, question in every_form(browser, dataset):
        for name, text in FILLED.items():
            if name in question.fields:
                question.put(name, text)
        if kind == "distance":
            question.put("target", "sky")
        question.put("epsilon", "7.5")
        page = send(browser, question)
        assert page.status_code == 200, (kind, form, words(page.text))
        paid = forms(page.text)["POST /ui/ask"]
        body = json.loads(paid.fields["request"][0])
        assert (body["dataset"], body["epsilon"], body["query"]["kind"]) == (dataset, "7.5", kind)
        quote = offered("ana", "POST", "/v1/quotes", json=body).json()
        for step in quote["steps"]:
            assert step["what"] in words(page.text)
        for name in quote["accuracy"]:
            assert name == "explanation" or name.replace("_", " ") in words(page.text)
        for name, value in quote["resolved"].items():
            assert (value if name == "reason" else value.replace("_", " ")) in words(page.text)
        answer = send(browser, paid)
        assert answer.url.path.startswith("/ui/queries/"), (kind, form, words(answer.text))
        path = f"/v1/queries/{answer.url.path.rpartition('/')[2]}"
        stored = offered("ana", "GET", path).json()
        # The first query of a kind may take long, because it compiles kernels.
        while stored["status"] == "running":
            stored = offered("ana", "GET", path, headers=WAIT).json()
            answer = browser.get(answer.url.path)
        assert stored["charge"]["epsilon"] == "7.5", (kind, form)
        visible = words(answer.text)
        assert "Answer" in visible
        if "selected" in stored["answer"]:
            selected = stored["answer"]["selected"]
            for one in selected if isinstance(selected, list) else [selected]:
                assert str(one) in visible
        if "value" in stored["answer"]:
            assert str(stored["answer"]["value"]) in visible
        # The button of the page sent the query first. So the shown Python program and the curl
        # command get its stored answer without a new charge.
        run_python(offered, page.text, monkeypatch)
        assert run_curl(offered, page.text) == (body, stored)
        (latest,) = offered("ana", "GET", "/v1/queries?limit=1").json()["items"]
        assert latest["id"] == stored["id"]
        tried.add(kind)
    expected = {"web": {"selection", "top_k", "statistic"}, "weather": set(QUERY_KINDS)}
    assert tried == expected[dataset]


@pytest.mark.parametrize(
    ("dataset", "kind", "form", "advanced"),
    [
        ("web", "top_k", "nodes", {"sensitivity", "selector", "draws", "rescore", "passes"}),
        ("weather", "distance", "", {"selection_rule", "threshold", "sensitivity", "selector"}),
        ("weather", "statistic", "median", {"mechanism", "delta"}),
    ],
)
@pytest.mark.usefixtures("offered")
def test_comparisons_are_folded_and_the_rule_of_the_service_comes_first(
    sign_in: SignIn, dataset: str, kind: str, form: str, advanced: set[str]
) -> None:
    page = sign_in("ana").get("/ui/ask", dataset=dataset, kind=kind, form=form).text
    before, _, after = page.partition("<details><summary>Advanced</summary>")
    # The explanations of terms inside the folded group of fields are folded too. The test removes
    # them, so that the group ends at the first closing tag.
    after = re.sub(r'<details class="term">.*?</details>', "", after, flags=re.S)
    group = after.partition("</details>")[0]
    for name in advanced:
        assert f'name="{name}"' in group
        assert f'name="{name}"' not in before
    for first in re.findall(r"<select[^>]*><option value=\"(\w*)\" selected", group):
        assert first in ("auto", "", "mean_su", "global", "permute_and_flip", "false")


def test_a_tree_is_drawn_and_its_words_stay_words(offered: Service, sign_in: SignIn) -> None:
    query = {"kind": "tree", "attributes": ["mood"], "max_depth": 1, "prune": False}
    body = {"dataset": "weather", "epsilon": "900", "query": query}
    answered = offered("ana", "POST", "/v1/queries", json=body).json()
    page = sign_in("ana").get(f"/ui/queries/{answered['id']}").text
    assert "<title>decision tree</title>" in page
    sizes = re.findall(r'type="radio" name="zoom-1" value="(\w+)"( checked)?', page)
    assert sizes == [("whole", " checked"), ("fit", ""), ("half", ""), ("twice", "")]
    assert "= high &lt;b&gt;" in page
    assert "<b>" not in page
    assert "mood = low: " in words(page)


def test_distances_are_drawn_beside_their_table(offered: Service, sign_in: SignIn) -> None:
    query = {"kind": "distance", "target": "mood"}
    body = {"dataset": "weather", "epsilon": "100", "query": query}
    answered = offered("ana", "POST", "/v1/queries", json=body).json()
    page = sign_in("ana").get(f"/ui/queries/{answered['id']}").text
    assert page.count('class="cell"') == 4
    assert page.count('class="branch"') == 1
    cell = f"{answered['answer']['distances']['mood']['matrix'][0][1]:.4g}"
    assert page.count(f'class="number">{cell}</td>') == 2
    assert "<b>" not in page


def test_a_query_outlives_the_page_that_waited_for_it(
    offered: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "WAIT", 0.0)
    browser = sign_in("ana")
    page = browser.get("/ui/ask", dataset="web", kind="selection").text
    paid = forms(send(browser, forms(page)["POST /ui/ask/quote"]).text)["POST /ui/ask"]
    path = f"/v1/queries/{send(browser, paid).url.path.rpartition('/')[2]}"
    stored = offered("ana", "GET", path, headers=WAIT).json()
    assert stored["status"] == "answered"


def test_a_form_sent_twice_is_charged_once(offered: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    question = forms(browser.get("/ui/ask", dataset="web", kind="selection").text)[
        "POST /ui/ask/quote"
    ]
    paid = forms(send(browser, question).text)["POST /ui/ask"]
    first, second = send(browser, paid), send(browser, paid)
    assert first.url == second.url
    again = forms(send(browser, question).text)["POST /ui/ask"]
    third = send(browser, again)
    assert third.url != first.url
    spent = offered("ana", "GET", "/v1/budgets").json()["items"]
    assert {a["dataset"]: a["spent"]["epsilon"] for a in spent}["web"] == "0.2"


@pytest.mark.parametrize("by", ["epsilon", "target"])
def test_a_line_run_before_the_button_is_charged_once(
    offered: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    browser = sign_in("ana")
    path = {"dataset": "weather", "kind": "statistic", "form": "count"}
    question = forms(browser.get("/ui/ask", **path).text)["POST /ui/ask/quote"]
    if by == "target":
        question.put("epsilon", "")
        question.put("target", "error")
        question.put("target.value", "12")
    page = send(browser, question)
    _, answered = run_curl(offered, page.text)
    run_python(offered, page.text, monkeypatch)
    pressed = send(browser, forms(page.text)["POST /ui/ask"])
    assert pressed.url.path == f"/ui/queries/{answered['id']}"
    assert str(answered["answer"]["value"]) in words(pressed.text)
    spent = offered("ana", "GET", "/v1/budgets").json()["items"]
    charged = {a["dataset"]: a["spent"]["epsilon"] for a in spent}
    assert charged["weather"] == answered["charge"]["epsilon"]


def test_a_question_that_does_not_fit_is_told_before_and_after(
    offered: Service, sign_in: SignIn
) -> None:
    browser = sign_in("ana")
    question = forms(browser.get("/ui/ask", dataset="web", kind="selection").text)[
        "POST /ui/ask/quote"
    ]
    question.put("epsilon", "1000")
    paid = forms(send(browser, question).text)["POST /ui/ask"]
    offered.grant("olga", "web", "ana", "0.5")
    page = send(browser, question)
    assert "It does not fit" in words(page.text)
    assert "POST /ui/ask" not in forms(page.text)
    refused = send(browser, paid)
    assert refused.status_code == 403
    assert "A question of at most ε 0.5 still fits" in words(refused.text)
    counted = offered.client.app.state.services.refusals  # type: ignore[attr-defined]
    counted.write()
    assert [(r.analyst, r.dataset, r.type) for r in counted.since(0)] == [
        ("ana", "web", "budget-exhausted")
    ]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("epsilon", "x", "not a decimal number"),
        ("epsilon", "-1", "an amount between 0.000001"),
        ("epsilon", "NaN", "decimal"),
        ("k", "two", "a whole number is required"),
        ("k", "0", "greater than or equal to 1"),
        ("k", "1e999", "not JSON"),
        ("utilities", "nonsense", "there is no such utility"),
        ("objective", "nonsense", "'single', 'weighted_sum' or 'pareto'"),
        ("weight.degree", "x", "a number is required"),
        ("target.value", "0", "greater than 0"),
        ("target.value", "[", "a number is required"),
    ],
)
def test_a_wrong_field_is_named_and_costs_nothing(
    offered: Service, sign_in: SignIn, field: str, text: str, said: str
) -> None:
    browser = sign_in("ana")
    question = forms(browser.get("/ui/ask", dataset="web", kind="top_k").text)["POST /ui/ask/quote"]
    question.put("k", "2")
    question.put(field, text)
    page = send(browser, question)
    assert page.status_code == 422
    assert said.lower() in words(page.text).lower()
    assert "POST /ui/ask" not in forms(page.text)
    # The form keeps the typed values, except for a choice that does not exist.
    values = forms(page.text)["POST /ui/ask/quote"].fields.get(field, [text])
    assert values == [text] or text == "nonsense"
    # A partial update of the page during typing gets status 200, even for a wrong field.
    assert send(browser, question, **{"HX-Request": "true"}).status_code == 200
    assert offered("ana", "GET", "/v1/queries").json()["items"] == []


def test_a_target_finds_its_epsilon(offered: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    path = {"dataset": "weather", "kind": "statistic", "form": "count"}
    question = forms(browser.get("/ui/ask", **path).text)["POST /ui/ask/quote"]
    question.put("epsilon", "")
    question.put("target", "error")
    question.put("target.value", "12")
    body = json.loads(forms(send(browser, question).text)["POST /ui/ask"].fields["request"][0])
    request = {"dataset": "weather", "target": {"error": 12}, "query": body["query"]}
    quoted = offered("ana", "POST", "/v1/quotes", json=request).json()
    assert body["epsilon"] == quoted["charge"]["epsilon"]


@pytest.mark.parametrize(
    ("statistic", "target"), [("count", "error"), ("mean", "error"), ("median", "rank_error")]
)
@pytest.mark.usefixtures("offered")
def test_only_targets_of_the_statistic_are_offered(
    sign_in: SignIn, statistic: str, target: str
) -> None:
    page = sign_in("ana").get("/ui/ask", dataset="weather", kind="statistic", form=statistic).text
    offered = page.partition('<select id="target"')[2].partition("</select>")[0]
    assert re.findall(r'value="(\w+)"', offered) == [target]


@pytest.mark.usefixtures("offered")
def test_a_condition_is_put_together(sign_in: SignIn) -> None:
    browser = sign_in("ana")
    path = {"dataset": "weather", "kind": "statistic", "form": "count"}
    question = forms(browser.get("/ui/ask", **path).text)["POST /ui/ask/quote"]

    def where(**fields: Any) -> Any:
        for name, value in fields.items():
            question.put(f"where.{name}", *([value] if isinstance(value, str) else value))
        page = send(browser, question)
        assert page.status_code == 200, words(page.text)
        request = forms(page.text)["POST /ui/ask"].fields["request"][0]
        return json.loads(request)["query"].get("where")

    assert where() is None
    sky = {"attribute": "sky", "in": ["sun", "fog"]}
    assert where(values=["0:0", "0:2"]) == sky
    heat = {"attribute": "heat", "from": 10, "to": 20.5}
    both = where(attribute="heat", **{"from": "10", "to": "20.5"})
    assert both == {"all": [sky, heat]}
    assert where(json='{"not": {"attribute": "coat", "in": ["yes"]}}') == {
        "not": {"attribute": "coat", "in": ["yes"]}
    }
    for wrong in ("9:9", "x", "0:-9"):
        question.put("where.json", "")
        question.put("where.values", wrong)
        assert send(browser, question).status_code == 422


def test_datasets_of_others_are_not_there(offered: Service, sign_in: SignIn) -> None:
    offered.user("ben", "analyst")
    ben = sign_in("ben")
    assert "There is nothing to ask yet" in ben.text("/ui/ask")
    for name in ("web", "absent"):
        assert ben.post("/ui/ask/quote", dataset=name, kind="selection").status_code == 404
        body = {
            "dataset": name,
            "epsilon": "1",
            "query": {"kind": "statistic", "statistic": "edges"},
        }
        reply = ben.post("/ui/ask", request=json.dumps(body), key="x")
        assert (reply.status_code, "Not found" in reply.text) == (404, True)


def test_only_what_can_be_asked_is_offered(offered: Service, sign_in: SignIn) -> None:
    offered.grant("olga", "steps", "ana", "1")
    page = sign_in("ana").get("/ui/ask").text
    assert re.findall(r"<option[^>]*>(web|weather|steps)</option>", page) == ["weather", "web"]
    # An admin sees the names of all datasets, but cannot query one without an account.
    offered.user("adam", "admin", "analyst")
    offered.dataset("olga", name="own")
    offered.grant("olga", "own", "adam", "1")
    browser = sign_in("adam")
    statuses = [browser.get("/ui/ask", dataset=name).status_code for name in ("own", "web")]
    assert statuses == [200, 404]
    assert browser.get("/ui/datasets/web").status_code == 404


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a":1,"a":2}', "NaN", '"\\ud800"', "[" * 999])
@pytest.mark.usefixtures("offered")
def test_a_request_that_no_page_has_made(sign_in: SignIn, text: str) -> None:
    assert sign_in("ana").post("/ui/ask", request=text, key="x").status_code == 422
