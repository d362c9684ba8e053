"""Questions with Gaussian noise in the dashboard: named by ρ, and topped up by asking again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from privypurse import Table, average
from tests.support.browser import HOME, Browser, SignIn, words
from tests.support.pageforms import PageForm, forms
from tests.support.service import Service
from tests.unit.app.queries.test_statistics import ROWS, TABLE


def send(browser: Browser, form: PageForm) -> Any:
    """Submit a form with the values of the page."""
    headers = {"Origin": HOME}
    return browser.client.post(
        form.action, data=form.fields, headers=headers, follow_redirects=True
    )


@pytest.mark.long
def test_gaussian_noise_is_topped_up_by_asking_for_what_is_missing(
    people: Service, sign_in: SignIn
) -> None:
    promise = {"epsilon": "10", "composition_delta": "0.000001", "gaussian": True}
    people("olga", "POST", "/v1/datasets", json=TABLE | {"cap": promise})
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    path = "/v1/datasets/staff/budgets/ana"
    assert people("olga", "PUT", path, json=promise | {"gaussian": False}).status_code == 200
    browser = sign_in("ana")
    of_table = {"dataset": "staff", "kind": "table"}
    assert 'name="rho"' not in browser.get("/ui/ask", **of_table).text
    assert people("olga", "PUT", path, json=promise).status_code == 200
    assert 'name="rho"' not in browser.get("/ui/ask", dataset="staff", kind="statistic").text
    question = forms(browser.get("/ui/ask", **of_table).text)["POST /ui/ask/quote"]
    question.put("rho", "0.05")
    page = send(browser, question)
    assert "Ask, and spend ρ 0.05" in words(page.text)
    assert "Your allowance takes it by ρ." in words(page.text)
    closing = "It is the first Gaussian noise on this allowance"
    assert closing in words(page.text)
    first = send(browser, forms(page.text)["POST /ui/ask"]).url.path.rpartition("/")[2]
    assert "rho=&#39;0.05&#39;" in page.text
    assert f"/ui/ask/again?query={first}" in browser.get(f"/ui/queries/{first}").text
    for rho, what in [("0.05", "more than the rho of the answer so far"), ("x", "not a decimal")]:
        assert what in browser.get("/ui/ask/again", query=first, rho=rho).text
    page = browser.get("/ui/ask/again", query=first, rho="0.2")
    assert "Ask, and spend ρ 0.15" in words(page.text)
    assert closing not in words(page.text)
    second = send(browser, forms(page.text)["POST /ui/ask"]).url.path.rpartition("/")[2]
    stored = [people("ana", "GET", f"/v1/queries/{id}").json() for id in (first, second)]
    assert [one["charge"]["rho"] for one in stored] == ["0.05", "0.15"]
    assert str(average([Table.read(one, {}) for one in stored]).rho) == "0.20"
    # The quote states the accuracy of the average of both answers, and charges only the missing ρ.
    in_all = {"dataset": "staff", "rho": "0.2", "query": stored[0]["query"]}
    error = people("ana", "POST", "/v1/quotes", json=in_all).json()["accuracy"]["parts"][0]["error"]
    assert re.findall(r"error (\d+\.\d+)", words(page.text)) == [str(error)]
    # Answers from two versions of a dataset cannot be averaged, so nobody may pay for a second one.
    assert people.upload("olga", "staff", ROWS.encode()).status_code == 201
    why = "queries no longer read the version"
    assert why in words(browser.get(f"/ui/queries/{first}").text)
    assert f"again?query={first}" not in browser.get(f"/ui/queries/{first}").text
    page = browser.get("/ui/ask/again", query=first, rho="0.2")
    assert (page.status_code, why in words(page.text)) == (422, True)
    assert "POST /ui/ask" not in forms(page.text)
    pure = people("ana", "POST", "/v1/queries", json=in_all | {"rho": None, "epsilon": "0.01"})
    for id in (pure.json()["id"], "absent"):
        assert browser.get("/ui/ask/again", query=id).status_code == 404
