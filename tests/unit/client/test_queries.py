"""One call gives one answer under one key, whatever fails during the call."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import httpx
import pytest

from privypurse import (
    BudgetExhausted,
    Forbidden,
    InvalidRequest,
    LedgerFrozen,
    PrivyPurse,
    Problem,
    QueryFailed,
    QueryReleased,
    Unanswered,
    Unreachable,
    top_k,
)
from tests.unit.client.conftest import ANSWERED, Play, Turn, problem

OK: Turn = (201, ANSWERED, {})
RUNNING: Turn = (
    200,
    {"id": "q1", "status": "running", "elapsed": 0.5, "expected": 0.8},
    {},
)
ACCEPTED: Turn = (202, {"id": "q1", "status": "running"}, {"Retry-After": "1"})
STILL = problem(409, "still-running", "1", id="q1")
LOOK, ASK = "GET /v1/queries/q1", "POST /v1/queries"


def test_made_up_records_are_a_file(play: Play) -> None:
    purse, script = play((200, "a,b\n1,2\n", {"Content-Type": "text/csv"}))
    assert purse.mock("star", rows=5, format="csv") == b"a,b\n1,2\n"
    assert [str(one.url.query) for one in script.requests] == ["b'rows=5&format=csv'"]
    assert script.lines == ["GET /v1/datasets/star/mock"]


def ask(purse: PrivyPurse, **options: Any) -> list[int]:
    return purse.ask("star", top_k(2, "degree"), epsilon=0.5, **options).selected


def test_the_body_is_that_of_the_contract(play: Play) -> None:
    purse, script = play(OK)
    assert ask(purse) == [4, 2]
    [request] = script.requests
    assert json.loads(request.content) == {
        "dataset": "star",
        "epsilon": "0.5",
        "query": {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]},
    }
    assert request.headers["Authorization"] == "Bearer pp_x"
    assert len(request.headers["Idempotency-Key"]) == 32


@pytest.mark.parametrize(
    "turn",
    [
        httpx.ConnectError,
        httpx.ReadError,
        httpx.RemoteProtocolError,
        httpx.ReadTimeout,
        problem(503, "busy", "2"),
        problem(503, "outcome-unknown", "1"),
        problem(429, "rate-limited", "7"),
        (502, "<html>away</html>", {"Content-Type": "text/html"}),
    ],
)
def test_temporary_failures_are_repeated_under_the_same_key(
    play: Play, pauses: list[float], turn: Turn
) -> None:
    purse, script = play(turn, turn, OK)
    assert ask(purse) == [4, 2]
    assert script.lines == [ASK] * 3
    assert len(script.keys()) == 1
    assert len({request.content for request in script.requests}) == 1
    if isinstance(turn, tuple) and (wait := turn[2].get("Retry-After")):
        assert pauses == [float(wait)] * 2
    else:
        assert 0 < pauses[0] <= 0.1
        assert 0.1 <= pauses[1] <= 0.2


def test_two_calls_are_two_queries_unless_they_share_a_key(play: Play) -> None:
    purse, script = play(OK, OK)
    ask(purse)
    ask(purse)
    assert len(script.keys()) == 2
    purse, script = play(OK, OK)
    ask(purse, key="mine")
    ask(purse, key="mine")
    assert script.keys() == {"mine"}


def test_the_call_waits_for_a_running_query(play: Play) -> None:
    answered: Turn = (200, ANSWERED, {})
    purse, script = play(ACCEPTED, RUNNING, STILL, RUNNING, STILL, answered)
    assert ask(purse) == [4, 2]
    assert script.lines == [ASK, LOOK] * 3
    assert len(script.keys()) == 1
    assert all(request.headers["Prefer"] == "wait=20" for request in script.requests)


def test_after_a_crash_the_query_is_sent_again_and_not_only_read(play: Play) -> None:
    """The service resumes the query only when its key is sent again."""
    lost = httpx.ReadError
    purse, script = play(lost, httpx.ConnectError, STILL, RUNNING, STILL, RUNNING, OK)
    assert ask(purse) == [4, 2]
    assert script.lines == [ASK] * 3 + [LOOK, ASK, LOOK, ASK]
    assert len(script.keys()) == 1


def test_a_connection_lost_while_reading_the_state_is_repeated(play: Play) -> None:
    purse, _ = play(ACCEPTED, httpx.ReadError, RUNNING, OK)
    assert ask(purse) == [4, 2]


def test_a_failed_query_raises_the_problem_of_its_key(play: Play) -> None:
    failed: Turn = (200, {"id": "q1", "status": "failed"}, {})
    purse, _ = play(ACCEPTED, failed, problem(500, "query-failed", id="q1"))
    with pytest.raises(QueryFailed) as caught:
        ask(purse, key="mine")
    assert caught.value.id == "q1"
    assert caught.value.idempotency_key == "mine"
    cancelled: Turn = (200, {"id": "q1", "status": "cancelled"}, {})
    purse, _ = play(ACCEPTED, cancelled, problem(409, "query-released", id="q1"))
    with pytest.raises(QueryReleased):
        ask(purse)


def test_a_timeout_raises_the_id_and_the_key_of_the_query(play: Play, pauses: list[float]) -> None:
    purse, script = play(ACCEPTED, RUNNING, STILL, RUNNING, STILL)
    with pytest.raises(Unanswered) as caught:
        ask(purse, timeout=2)
    assert caught.value.id == "q1"
    assert script.keys() == {caught.value.idempotency_key}
    assert sum(pauses) == 2
    assert script.requests[0].headers["Prefer"] == "wait=2"


@pytest.mark.parametrize("key", ["", " \n", "pp_ü_x"])
def test_what_is_no_key_is_refused_before_anything_is_sent(key: str) -> None:
    with pytest.raises(ValueError, match="a key is"):
        PrivyPurse("http://service", key)


def test_the_call_gives_up_soon_if_the_service_never_replied(
    play: Play, pauses: list[float]
) -> None:
    purse, script = play(after=httpx.ConnectError, patience=100)
    with pytest.raises(Unreachable, match="http://service"):
        ask(purse)
    assert sum(pauses) < 5
    assert len(script.requests) > 3


@pytest.mark.parametrize("first", [ACCEPTED, httpx.ReadError, httpx.RemoteProtocolError])
def test_a_service_that_received_a_request_gets_the_whole_patience(
    play: Play, pauses: list[float], first: Turn
) -> None:
    """A service that is killed during its first query existed, although it never replied."""
    purse, _ = play(first, after=httpx.ConnectError, patience=60)
    with pytest.raises(Unreachable):
        ask(purse)
    assert 50 < sum(pauses) <= 61


def test_a_wait_longer_than_patience_is_raised_immediately(play: Play, pauses: list[float]) -> None:
    purse, _ = play(problem(503, "busy", "3600"))
    with pytest.raises(Problem, match="busy"):
        ask(purse)
    purse, _ = play(problem(503, "frozen", "5"))
    with pytest.raises(LedgerFrozen):
        ask(purse)
    assert pauses == []


def test_an_exhausted_budget_names_the_largest_charge_that_fits(play: Play) -> None:
    amounts = {
        "charge": {"epsilon": "0.5", "delta": "0"},
        "remaining": {"epsilon": "0.2", "delta": "0"},
        "largest_affordable": {"epsilon": "0.2", "delta": "0"},
    }
    purse, script = play(problem(403, "budget-exhausted", detail="too much", **amounts))
    with pytest.raises(BudgetExhausted, match="too much") as caught:
        ask(purse)
    assert caught.value.remaining.epsilon == Decimal("0.2")
    assert caught.value.largest_affordable.epsilon == Decimal("0.2")
    assert caught.value.charge.epsilon == Decimal("0.5")
    assert len(script.requests) == 1


def test_a_retry_after_of_zero_still_pauses(play: Play, pauses: list[float]) -> None:
    purse, _ = play(problem(503, "busy", "0"), problem(503, "busy", "0"), OK)
    assert ask(purse) == [4, 2]
    assert all(pause >= 0.05 for pause in pauses)


def test_refusals_are_not_repeated(play: Play) -> None:
    purse, _ = play(problem(403, "forbidden"))
    with pytest.raises(Forbidden):
        ask(purse)
    errors = [{"loc": ["body", "epsilon"], "type": "amount", "msg": "too many digits"}]
    purse, _ = play(problem(422, "invalid-request", errors=errors))
    with pytest.raises(InvalidRequest, match=r"body\.epsilon: too many digits"):
        ask(purse)
    purse, _ = play(problem(418, "a-later-kind"))
    with pytest.raises(Problem) as caught:
        ask(purse)
    assert (type(caught.value), caught.value.slug) == (Problem, "a-later-kind")


def test_requests_that_must_happen_once_are_not_sent_twice(play: Play) -> None:
    """A repetition would report the name as taken, and the key of the first reply is lost."""
    purse, _ = play(httpx.ReadError)
    with pytest.raises(Unreachable):
        purse.create_user("ada", "analyst")
    created: Turn = (201, {"name": "ada", "roles": ["analyst"], "key": "pp_1", "key_id": "1"}, {})
    purse, script = play(httpx.ConnectError, problem(429, "rate-limited", "1"), created)
    assert purse.create_user("ada", "analyst").key == "pp_1"
    assert len(script.requests) == 3
    purse, _ = play((502, "", {}))
    with pytest.raises(Problem):
        purse.create_user("ada", "analyst")


def test_the_key_is_not_printed_and_the_address_needs_a_scheme() -> None:
    assert repr(PrivyPurse("http://service", "pp_secret")) == "PrivyPurse('http://service')"
    with pytest.raises(ValueError, match="http"):
        PrivyPurse("service:8000", "pp_x")
