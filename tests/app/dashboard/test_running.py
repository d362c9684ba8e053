"""A query that runs is shown with the time it took and the time it may take, until its instant."""

from __future__ import annotations

import re
import time

import pytest

from app.settings import Settings
from tests.app.conftest import Service
from tests.app.dashboard.conftest import SignIn

INTERVAL = 4.0


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"release_interval": INTERVAL})


def test_it_runs_for_everybody_until_its_instant(people: Service, sign_in: SignIn) -> None:
    people.dataset("olga", name="web")
    people.grant("olga", "web", "ana", "1")
    browser, owner = sign_in("ana"), sign_in("olga")
    query = {"kind": "statistic", "statistic": "edges"}
    body = {"dataset": "web", "epsilon": "0.5", "query": query}
    begun = time.monotonic()
    asked = people(
        "ana", "POST", "/v1/queries", json=body, headers={"Prefer": "respond-async"}
    ).json()
    path = f"/ui/queries/{asked['id']}"
    for text in (
        browser.text("/ui/queries"),
        browser.text("/ui/queries/running"),
        browser.text(path),
        owner.text("/ui/queries"),
        owner.text(path),
    ):
        assert re.search(r"\d\.\d s so far(, may|; it may) end at 4\.0 s", text), text
    assert "Cancel, if it has not begun" in browser.text(path)
    assert "Cancel" not in owner.text(path)
    assert "Answer " not in browser.text(path)
    assert time.monotonic() - begun < INTERVAL, "the machine is too slow for this test"
    people("ana", "GET", f"/v1/queries/{asked['id']}", headers={"Prefer": "wait=20"})
    part = browser.client.get("/ui/queries/running", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-refresh"]) == (204, "true")
    part = browser.client.get(path, headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-refresh"]) == (204, "true")
    assert "Running now" not in browser.text("/ui/queries")
    assert "Left on web after it: ε 0.5" in browser.text(path)
