"""Keys with restrictions: what the client sends, and what it reads back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from privypurse.accounts import Balance
from privypurse.administration import IssuedKey
from tests.unit.client.conftest import Play

BALANCE = {
    "allowance": {"epsilon": "0.5", "delta": "0"},
    "spent": {"epsilon": "0.2", "delta": "0"},
    "remaining": {"epsilon": "0.3", "delta": "0"},
}


def test_a_key_is_issued_with_its_restrictions(play: Play) -> None:
    reply: Any = (201, {"key": "pp_k_s", "key_id": "k"}, {})
    purse, script = play(reply, reply)
    until = datetime(2100, 1, 1, tzinfo=UTC)
    issued = purse.issue_key("ada", epsilon=0.5, until=until, datasets=("people",))
    assert issued == IssuedKey("k", "pp_k_s")
    purse.issue_key("ada")
    bodies = [json.loads(request.content) for request in script.requests]
    assert bodies == [
        {
            "epsilon": "0.5",
            "delta": "0",
            "until": "2100-01-01T00:00:00+00:00",
            "datasets": ["people"],
        },
        {},
    ]


def test_a_key_says_what_it_may_do(play: Play) -> None:
    facts = {"created": "2026-01-01T00:00:00Z", "last_used": None, "revoked": False}
    none = {"until": None, "datasets": None, "budget": None}
    restrictions = {"until": "2100-01-01T00:00:00Z", "datasets": ["people"], "budget": BALANCE}
    items = [{"key_id": "a", **facts, **restrictions}, {"key_id": "b", **facts, **none}]
    purse, _ = play((200, {"items": items, "next": None}, {}))
    restricted, plain = purse.keys("ada")
    assert restricted.until == datetime(2100, 1, 1, tzinfo=UTC)
    assert restricted.datasets == ["people"]
    assert restricted.budget == Balance.of(BALANCE)
    assert (plain.until, plain.datasets, plain.budget) == (None, None, None)


def test_a_grant_names_an_end_only_where_it_changes_one(play: Play) -> None:
    account = {**BALANCE, "dataset": "friends", "analyst": "ada"}
    until = datetime(2100, 1, 1, tzinfo=UTC)
    replies = [(200, account | {"until": until.isoformat()}, {})] * 3
    purse, script = play(*replies)
    assert purse.grant("friends", "ada", epsilon=1).until == until
    purse.grant("friends", "ada", epsilon=1, until=until)
    purse.grant("friends", "ada", epsilon=1, until=None)
    ends = [json.loads(one.content).get("until", "as it is") for one in script.requests]
    assert ends == ["as it is", until.isoformat(), None]


def test_the_balance_of_the_key_itself(play: Play) -> None:
    listing = {"items": [], "next": None}
    purse, _ = play((200, listing | {"key": BALANCE}, {}), (200, listing, {}))
    balance = purse.key_budget()
    assert balance is not None
    assert balance.remaining.epsilon == Decimal("0.3")
    assert purse.key_budget() is None
