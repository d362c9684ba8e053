"""A caller that is cancelled leaves no charge without work, whatever the service does just then.

A task of a request is cancelled when a service stops, or when the client of a long request is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.engine.requests import QueryRequest
from app.usecases.services import Services
from storage.ledger.ledger import Replay
from tests.support.service import Service

BODY: dict[str, Any] = {
    "dataset": "triangle",
    "epsilon": "0.001",
    "query": {"kind": "selection", "utilities": [{"name": "degree"}]},
}


@pytest.fixture
def services(people: Service) -> Services:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    state: Services = people.client.app.state.services  # type: ignore[attr-defined]
    return state


def request() -> QueryRequest:
    return QueryRequest.model_validate_json(json.dumps(BODY))


def played(people: Service, story: Callable[[], Awaitable[None]]) -> None:
    """Runs a story on the event loop of the service."""
    assert people.client.portal is not None
    people.client.portal.call(story)


async def quiet(services: Services) -> None:
    """Nothing of any query goes on any more."""
    answering = services.answering
    while answering._running:
        await asyncio.sleep(0.001)


def outcomes(people: Service) -> list[str]:
    items = people("ana", "GET", "/v1/queries").json()["items"]
    return [query["status"] for query in items]


def test_a_caller_cancelled_while_the_ledger_charges_finds_the_answer_under_the_key(
    people: Service, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, answering = services.ledger.reserve, services.answering
    charged, go_on = asyncio.Event(), asyncio.Event()

    async def slow(reservation: Any) -> Any:
        outcome = await reserve(reservation)
        charged.set()
        await go_on.wait()
        return outcome

    monkeypatch.setattr(services.ledger, "reserve", slow)

    async def story() -> None:
        ana = services.users.find("ana")
        caller = asyncio.create_task(answering.answer(request(), ana, "k", 60.0))
        await charged.wait()
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled()
        go_on.set()
        await quiet(services)

    played(people, story)
    assert outcomes(people) == ["answered"]
    replay = people("ana", "POST", "/v1/queries", json=BODY, headers={"Idempotency-Key": "k"})
    assert replay.headers["Idempotency-Replayed"] == "true"
    assert people.spent() == "0.001"


def test_a_caller_may_be_cancelled_at_any_step(people: Service, services: Services) -> None:
    """The query is either not charged or answered, and no longer in flight."""
    answering, steps = services.answering, 40

    async def story() -> None:
        ana = services.users.find("ana")
        for step in range(steps):
            caller = asyncio.create_task(answering.answer(request(), ana, f"{step}", 60.0))
            for _ in range(step):
                await asyncio.sleep(0)
            caller.cancel()
            await asyncio.wait([caller])
            await quiet(services)
            assert not answering._in_flight._counts

    played(people, story)
    statuses = outcomes(people)
    assert set(statuses) == {"answered"}
    # Each query is cancelled after a different number of steps of the event loop. At the first step
    # it is not charged yet. In more than half of the steps it is charged, and must then be
    # answered.
    assert steps // 2 < len(statuses) < steps
    assert float(people.spent()) == pytest.approx(0.001 * len(statuses))


def test_a_service_that_stops_waits_for_what_the_ledger_charges(
    people: Service, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, answering = services.ledger.reserve, services.answering

    async def slow(reservation: Any) -> Any:
        await asyncio.sleep(0.05)
        return await reserve(reservation)

    monkeypatch.setattr(services.ledger, "reserve", slow)

    async def story() -> None:
        ana = services.users.find("ana")
        caller = asyncio.create_task(answering.answer(request(), ana, "k", 60.0))
        while not answering._running:
            await asyncio.sleep(0)
        caller.cancel()
        await answering.close()
        row = services.ledger.replay(ana.id, "k", request().body_hash)
        assert isinstance(row, Replay)

    played(people, story)
