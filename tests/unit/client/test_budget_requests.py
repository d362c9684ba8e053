"""Requests for budget: what the client sends, and what it reads back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.unit.client.conftest import Play

REQUEST: dict[str, Any] = {
    **{"id": "a-b", "status": "open", "dataset": "people", "analyst": "ada"},
    **{"epsilon": "2", "delta": "0", "until": "2100-01-01T00:00:00Z", "purpose": "a report"},
    **{"created": "2026-01-01T00:00:00Z", "decided": None, "granted": None},
    **{"granted_until": None, "reason": None},
}
UNTIL = datetime(2100, 1, 1, tzinfo=UTC)


def test_a_request_is_sent_once_and_read(play: Play) -> None:
    purse, script = play((201, REQUEST, {}))
    request = purse.request_budget("people", epsilon=2, purpose="a report", until=UNTIL)
    assert (request.requested.epsilon, request.until, request.granted) == (Decimal(2), UNTIL, None)
    (sent,) = script.requests
    assert (sent.method, sent.url.path) == ("POST", "/v1/datasets/people/requests")
    assert json.loads(sent.content) == {
        **{"epsilon": "2", "delta": "0", "purpose": "a report"},
        "until": "2100-01-01T00:00:00+00:00",
    }


def test_a_decision_names_only_what_differs(play: Play) -> None:
    decided = REQUEST | {"status": "granted", "granted": {"epsilon": "1", "delta": "0"}}
    reply: Any = (200, decided, {})
    purse, script = play(reply, reply, reply, reply)
    granted = purse.grant_request("people", "a-b", reason="agreed").granted
    assert granted is not None
    assert granted.epsilon == 1
    purse.grant_request("people", "a-b", reason="less", epsilon=1, delta="0", until=UNTIL)
    purse.grant_request("people", "a-b", reason="no end", until=None)
    purse.refuse_request("people", "a-b", reason="no")
    assert [json.loads(request.content) for request in script.requests] == [
        {"decision": "grant", "reason": "agreed"},
        {
            **{"decision": "grant", "reason": "less", "epsilon": "1", "delta": "0"},
            "until": "2100-01-01T00:00:00+00:00",
        },
        {"decision": "grant", "reason": "no end", "until": None},
        {"decision": "refuse", "reason": "no"},
    ]
    assert script.requests[0].url.path == "/v1/datasets/people/requests/a-b/decision"
