"""The page of a running query shows its time so far and its deadline, until it is released."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from app.config.settings import Settings
from tests.support.browser import SignIn
from tests.support.patience import PATIENCE, WAIT
from tests.support.service import Service

INTERVAL = 1.0


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"release_interval": INTERVAL})


@pytest.fixture
def go_on(people: Service, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event; no query settles before it is set, however slow the machine is."""
    ledger, go_on = people.client.app.state.services.ledger, threading.Event()  # type: ignore[attr-defined]
    settle = ledger.settle

    async def settle_later(*reservation: Any, **reply: Any) -> bool:
        assert await asyncio.to_thread(go_on.wait, PATIENCE)
        return bool(await settle(*reservation, **reply))

    monkeypatch.setattr(ledger, "settle", settle_later)
    return go_on


def test_it_runs_for_everybody_until_its_deadline(
    people: Service, sign_in: SignIn, go_on: threading.Event
) -> None:
    people.dataset("olga", name="web")
    people.grant("olga", "web", "ana", "1")
    browser, owner = sign_in("ana"), sign_in("olga")
    query = {"kind": "statistic", "statistic": "edges"}
    body = {"dataset": "web", "epsilon": "0.5", "query": query}
    running = people(
        "ana", "POST", "/v1/queries", json=body, headers={"Prefer": "respond-async"}
    ).json()
    path = f"/ui/queries/{running['id']}"
    for text in (
        browser.text("/ui/queries"),
        browser.text("/ui/queries/running"),
        browser.text(path),
        owner.text("/ui/queries"),
        owner.text(path),
    ):
        # The page shows the next deadline, which is a whole number of release intervals of a
        # second.
        match = re.search(r"\d\.\d s so far(?:, may|; it may) end at (\d+)\.0 s", text)
        assert match, text
    assert "Cancel, if it has not begun" in browser.text(path)
    assert "Cancel" not in owner.text(path)
    assert "Answer " not in browser.text(path)
    go_on.set()
    people("ana", "GET", f"/v1/queries/{running['id']}", headers=WAIT)
    part = browser.client.get("/ui/queries/running", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-refresh"]) == (204, "true")
    part = browser.client.get(path, headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-refresh"]) == (204, "true")
    assert "Running now" not in browser.text("/ui/queries")
    assert "Left on web after it: ε 0.5" in browser.text(path)
