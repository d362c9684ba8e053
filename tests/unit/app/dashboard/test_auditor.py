"""The pages of an auditor: verification of the ledger, refusals and the audit trail."""

from __future__ import annotations

import csv
import io
import re

import pytest

from tests.support.browser import SignIn, words
from tests.support.service import Service
from tests.unit.app.dashboard.test_analyst import ask
from tests.unit.app.routes.test_ledger import tamper

QUERY = {"kind": "statistic", "statistic": "edges"}


@pytest.fixture
def shop(people: Service) -> Service:
    for name in ("one", "two"):
        people.dataset("olga", name=name)
        people.grant("olga", name, "ana", "1")
    ask(people, "one")
    return people


@pytest.mark.long
def test_the_check_is_that_of_the_api(shop: Service, sign_in: SignIn) -> None:
    for who in ("otto", "olga", "ana"):
        browser = sign_in(who)
        page = words(browser.post("/ui/verification").text)
        # Opening the page shows the result of the last verification and starts no new one.
        assert "The ledger is valid" in words(browser.text("/ui/verification"))
        verification = shop(who, "GET", "/v1/ledger/verification").json()
        assert "The ledger is valid" in page
        assert f"Entries {verification['entries']} Head {verification['head']}" in page


def test_tampering_is_found_and_books_disagree(shop: Service, sign_in: SignIn) -> None:
    browser = sign_in("otto")
    assert "one 1 ε 0.25 ε 0.25 ε 10 yes" in browser.text("/ui/verification")
    tamper(shop, "UPDATE budget_account SET charged_eps_n = 1 WHERE rank = 0 AND charged_eps_n > 0")
    page = words(browser.post("/ui/verification").text)
    assert "The ledger contradicts itself" in page
    assert "budget_account" in page
    assert "one 1 ε 0.000000001 ε 0.25 ε 10 no" in page


def test_books_are_those_of_ones_own_datasets(shop: Service, sign_in: SignIn) -> None:
    shop.user("oscar", "owner")
    shop.dataset("oscar", name="other")
    assert "other" in sign_in("otto").text("/ui/verification")
    assert "other" not in sign_in("olga").text("/ui/verification")
    assert "Do the books agree" not in sign_in("ana").text("/ui/verification")


class TestRefusals:
    def refuse(self, shop: Service, times: int) -> None:
        body = {"dataset": "one", "epsilon": "9", "query": QUERY}
        for _ in range(times):
            assert shop("ana", "POST", "/v1/queries", json=body).status_code == 403
        shop.client.app.state.services.refusals.write()  # type: ignore[attr-defined]

    def test_counts_and_bursts(self, shop: Service, sign_in: SignIn) -> None:
        browser = sign_in("otto")
        assert "Nothing was refused" in browser.text("/ui/refusals")
        self.refuse(shop, 19)
        text = browser.text("/ui/refusals")
        assert "ana one budget-exhausted 19" in text
        assert "Nobody was refused 20 times or more" in text
        self.refuse(shop, 1)
        text = browser.text("/ui/refusals", days=1)
        assert re.search(r"Bursts Analyst Hour from Refusals ana [\d :-]+ UTC 20 20 or more", text)
        assert browser.get("/ui/refusals", days=0).status_code == 422

    def test_as_a_file(self, shop: Service, sign_in: SignIn) -> None:
        self.refuse(shop, 2)
        reply = sign_in("otto").client.get("/ui/refusals.csv")
        (row,) = csv.DictReader(io.StringIO(reply.text))
        assert row.pop("hour").endswith(":00:00+00:00")
        assert row == {
            "analyst": "ana",
            "dataset": "one",
            "type": "budget-exhausted",
            "refusals": "2",
        }


def test_the_trail_and_its_file(
    shop: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.dashboard.views.auditing.PAGE", 3)
    monkeypatch.setattr("app.usecases.pages.PAGE", 3)
    listed = shop("otto", "GET", "/v1/audit?limit=1000").json()["items"]
    browser = sign_in("otto")
    rows = list(csv.DictReader(io.StringIO(browser.client.get("/ui/audit.csv").text)))
    assert list(rows[0]) == ["at", "actor", "action", "subject", "detail"]
    assert [(row["at"], row["action"], row["subject"]) for row in rows] == [
        (line["at"], line["action"], line["subject"]) for line in listed
    ]
    assert len(rows) > 6
    # The audit log states the cap of a new dataset as a JSON object of amounts, which the page must
    # show as text.
    (registered,) = [line for line in listed if line["action"] == "dataset.register"][:1]
    cap = ", ".join(f"{name} {amount}" for name, amount in registered["detail"]["cap"].items())
    shop.dataset("olga", name="promised", records=None)
    assert f"cap {cap}" in browser.text("/ui/audit")
    listed = shop("otto", "GET", "/v1/audit?limit=1000").json()["items"]
    path, seen = "/ui/audit", 0
    while True:
        page = browser.get(path).text
        seen += page.count("<time")
        older = re.search(r'href="([^"]+cursor=[^"]+)"', page)
        if older is None:
            break
        path = older[1].replace("&amp;", "&")
    assert seen == len(listed)
