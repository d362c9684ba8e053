"""Whatever a query ends with, its request and its records do not wait for a garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from accounting.errors import BudgetExhausted
from app.engine import attempts, schedule
from app.engine.attempts import Attempt
from app.queries.selection.body import Selection
from storage.errors import Busy, StorageError
from storage.ledger.requests import Reserve
from storage.queries.lookup import LookedUp
from tests.support.service import Service
from tests.unit.app.engine import test_answering
from tests.unit.app.engine.test_answering import BODY, ask, hold, services

shop, settings = test_answering.shop, test_answering.settings

#: What must be gone with the reply to a query.
OWN = (Attempt, Reserve, BudgetExhausted, StorageError, MemoryError)


def remains_of(call: Callable[[], object]) -> set[str]:
    """Those classes of ``OWN`` of which objects still exist after ``call`` has run three times."""
    call()
    gc.collect()
    gc.disable()
    try:
        before = {id(one) for one in gc.get_objects() if isinstance(one, OWN)}
        for _ in range(3):
            call()
        return {
            type(one).__name__
            for one in gc.get_objects()
            if isinstance(one, OWN) and id(one) not in before
        }
    finally:
        gc.enable()


def too_dear(shop: Service) -> None:
    reply = shop("ana", "POST", "/v1/queries", json={**BODY, "epsilon": "2"})
    assert reply.status_code == 403


def test_an_answer(shop: Service) -> None:
    assert remains_of(lambda: ask(shop)) == set()


def test_a_refusal_before_the_charge(shop: Service) -> None:
    assert remains_of(lambda: too_dear(shop)) == set()


def test_a_refusal_by_the_ledger(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LookedUp, "refusal", lambda *_: None)
    assert remains_of(lambda: too_dear(shop)) == set()


def test_an_answer_that_cannot_be_stored(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_reservation: Any, **_reply: Any) -> bool:
        raise Busy("the database cannot answer now")

    monkeypatch.setattr(services(shop).ledger, "settle", away)
    assert remains_of(lambda: ask(shop)) == set()


@pytest.mark.parametrize("inline", [attempts.INLINE, -1.0], ids=["on the loop", "in a thread"])
def test_work_that_fails(shop: Service, monkeypatch: pytest.MonkeyPatch, inline: float) -> None:
    def fails(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(Selection, "compute", fails)
    monkeypatch.setattr(attempts, "INLINE", inline)
    assert remains_of(lambda: ask(shop)) == set()


def test_a_query_that_is_cancelled(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LIGHT", -1.0)
    gate = hold(shop)

    def cancelled() -> None:
        path = ask(shop, "respond-async").headers["Location"]
        assert shop("ana", "DELETE", path).status_code == 204

    assert remains_of(cancelled) == set()
    gate.set()
