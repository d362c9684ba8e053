"""The form editor of public descriptions: every step is a form of the page, without script."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.contract.descriptions import REGISTRATIONS
from app.contract.errors import InvalidRequest
from app.dashboard.drafts import AttributeDraft, Draft, code_book
from app.dashboard.forms import Form
from app.dashboard.views.registration import REGISTRATION
from tests.support.browser import Browser, SignIn, words
from tests.support.pageforms import PageForm, forms
from tests.support.service import GRAPH, Service
from tests.unit.app.dashboard.test_ask import TABLE

EDITOR = "POST /ui/register/draft"
FULL: dict[str, Any] = {
    **TABLE,
    "description": "two\nlines",
    "min_rows": 5,
    "person": "id",
    "records_per_person": 3,
    "minimum_count": 10,
    "cap": {"epsilon": "20", "delta": 0.001, "composition_delta": "0.000001", "gaussian": True},
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["F", "M", "1", "1.0"], "missing": ""},
        {"name": "kind", "kind": "categorical", "values": ["a", "12E3456789"]},
        {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": [0, 18.5, 120]},
        {"name": "pay", "kind": "numeric", "bounds": [-1.5, 10], "bins": 10, "clamp": True},
        {
            "name": "seen",
            "kind": "date",
            "bounds": ["2020-01-01", "2024-12-31"],
            "bins": "month",
            "missing": "?",
        },
    ],
}


def step(browser: Browser, form: PageForm, do: str, **fields: str) -> Any:
    """Press a button of the editor with the page's fields, some of them changed."""
    sent = {**form.fields, **{name: [text] for name, text in fields.items()}, "do": [do]}
    return browser.post("/ui/register/draft", **sent)


def editor(reply: Any) -> PageForm:
    return forms(reply.text)[EDITOR]


def test_a_table_is_described_checked_and_registered(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("olga")
    form = editor(browser.get("/ui/register"))
    book = "sex: Female | Male\n\nage: 0 to 120\nseen: 2020-01-01 to 2024-12-31"
    form = editor(step(browser, form, "read", codebook=book))
    assert form.fields["attributes"] == ["3"]
    form = editor(step(browser, form, "add"))
    form = editor(step(browser, form, "remove 2", **{"3.name": "pay", "3.kind": "numeric"}))
    assert [form.fields[f"{n}.name"] for n in range(3)] == [["sex"], ["age"], ["pay"]]
    # The new attribute pay has no bounds yet, so the check of the form must name it.
    reply = step(browser, form, "check", name="clinic", max_rows="1000", **{"cap.epsilon": "2"})
    assert reply.status_code == 422
    assert "pay: numeric mend this" in words(reply.text)
    assert "age: numeric mend this" not in words(reply.text)
    form = editor(reply)
    reply = step(browser, form, "check", **{"2.lower": "0", "2.upper": "9000", "1.bins": "4"})
    assert reply.status_code == 200, words(reply.text)
    page = words(reply.text)
    assert "The description is complete. Nothing is registered yet." in page
    assert "100 answers, ε 0.02 each" in page
    assert people("olga", "GET", "/v1/datasets/clinic").status_code == 404
    reply = step(browser, editor(reply), "register")
    assert (reply.status_code, reply.headers["location"]) == (303, "/ui/datasets/clinic")
    served = people("olga", "GET", "/v1/datasets/clinic").json()
    assert [one["name"] for one in served["attributes"]] == ["sex", "age", "pay"]
    assert served["attributes"][1] == {
        "name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 4, "clamp": False
    }  # fmt: skip
    again = step(browser, editor(browser.get("/ui/register")), "register", name="clinic")
    assert again.status_code == 422


def test_a_description_passes_the_form_unchanged(sign_in: SignIn) -> None:
    browser = sign_in("olga")
    for described in (FULL, *(one["value"] for one in REGISTRATIONS.values())):
        reply = browser.post("/ui/register", description=json.dumps(described), do="open")
        assert reply.status_code == 200, words(reply.text)
        form = editor(reply)
        sent = Draft.sent(Form(form.fields)).description()
        assert sent == Draft.read(json.dumps(described)).description()
        read = REGISTRATION.validate_json
        assert read(json.dumps(sent)) == read(json.dumps(described))
        assert step(browser, form, "check").status_code == 200


def test_an_unfinished_draft_opens_and_says_what_is_to_decide(sign_in: SignIn) -> None:
    draft = {
        "name": None, "kind": "table", "neighbouring": "add_remove", "max_rows": None, "cap": None,
        "attributes": [
            {"name": "sex", "kind": "categorical", "values": None, "missing": None},
            {"name": "age", "kind": "numeric", "bounds": None, "bins": None, "missing": None},
            {"name": "odd", "kind": None},
        ],
    }  # fmt: skip
    browser = sign_in("olga")
    reply = browser.post("/ui/register", description=json.dumps(draft), do="open")
    assert reply.status_code == 200
    checked = step(browser, editor(reply), "check")
    assert checked.status_code == 422
    for attribute in ("sex: categorical", "age: numeric", "odd"):
        assert f"{attribute} mend this" in words(checked.text)


@pytest.mark.parametrize(
    "described",
    [
        {**GRAPH, "nodes": {"ids": ["a", "b"]}},
        {**GRAPH, "surprise": 1},
        {**TABLE, "attributes": [{"name": "a", "kind": "categorical", "values": [" a"]}]},
        {**TABLE, "attributes": [{"name": "a", "kind": "categorical", "values": ["a\nb"]}]},
        {**TABLE, "attributes": [{"name": "a", "kind": "categorical", "missing": " NA"}]},
        {**TABLE, "attributes": 3},
        {**TABLE, "cap": [1]},
        [1],
        None,
    ],
)
def test_what_the_form_cannot_show_it_does_not_open(described: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Draft.read(json.dumps(described))
    assert refused.value.errors[0].type == "not_shown"


def test_a_code_book_names_the_line_that_it_cannot_read() -> None:
    assert code_book("a: x |  y\r\nb: 0 to 1.5\rc: one to two\n") == (
        AttributeDraft("a", values="x\ny"),
        AttributeDraft("b", "numeric", lower="0", upper="1.5"),
        AttributeDraft("c", values="one to two"),
    )
    for text in ("a: x\nb", "a: x\n: y", "a: x\nb:"):
        with pytest.raises(InvalidRequest) as refused:
            code_book(text)
        assert refused.value.errors[0].loc == ("code book", "line 2")


def test_hostile_fields_are_refused(sign_in: SignIn) -> None:
    browser = sign_in("olga")
    hostile = [
        {"attributes": "1001"},
        {"attributes": "99999999999999999999"},
        {"attributes": "000000999999999999"},
        {"attributes": "-1"},
        {"attributes": "²"},
        {"do": "check", "attributes": "1", "0.kind": "<b>", "0.name": "x"},
        {"do": "check", "kind": "table", "max_rows": "NaN"},
        {"do": "check", "kind": "prefix", "public_values": "1e999"},
        {"do": "check", "kind": "table", "max_rows": "[" * 100_000},
        {"do": "check", "cap.epsilon": "<script>alert(1)</script>"},
        {"do": "read", "codebook": "\x07"},
    ]
    for fields in hostile:
        reply = browser.post("/ui/register/draft", **fields)
        assert reply.status_code == 422, fields
        assert "<script>alert" not in reply.text
        assert "<b>" not in reply.text


def test_a_step_that_fits_nothing_changes_nothing(sign_in: SignIn) -> None:
    browser = sign_in("olga")
    form = editor(browser.get("/ui/register"))
    for do in ("remove 7", "remove -1", "remove ²", "nothing", ""):
        reply = step(browser, form, do, **{"0.name": "a"})
        assert reply.status_code == 200
        assert editor(reply).fields == {**form.fields, "0.name": ["a"]}


def test_a_description_is_replaced_until_the_first_grant(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("olga")
    for body in (FULL, {**GRAPH, "name": "web"}):
        assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
        path = f"/ui/datasets/{body['name']}"
        assert "Change the description" in browser.text(path)
        form = editor(browser.get(f"{path}/description"))
        reply = step(browser, form, "register", description="another", **{"cap.epsilon": "3"})
        assert (reply.status_code, reply.headers["location"]) == (303, path)
        served = people("olga", "GET", f"/v1/datasets/{body['name']}").json()
        assert (served["description"], served["cap"]["epsilon"]) == ("another", "3")
        assert people.grant("olga", body["name"], "ana").status_code == 200
        form = editor(browser.get(f"{path}/description"))
        late = step(browser, form, "register", description="too late")
        assert late.status_code == 409
        assert "An allowance was granted, so the description stays" in words(late.text)
    wrong = {**GRAPH, "name": "other"}
    renamed = people("olga", "PUT", "/v1/datasets/web", json=wrong)
    assert (renamed.status_code, renamed.json()["errors"][0]["type"]) == (422, "name")
    assert people("olga", "PUT", "/v1/datasets/other", json=wrong).status_code == 404
    verified = people("otto", "GET", "/v1/ledger/verification").json()
    assert verified["valid"] is True, verified
    actions = [one["action"] for one in people("otto", "GET", "/v1/audit").json()["items"]]
    assert actions.count("dataset.replace") == 2
