"""The ledger over HTTP: verification, limits over all datasets, and the audit trail."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.cli import cli
from storage.errors import StillRunning
from tests.support.service import Service

QUERY = {"kind": "selection", "utilities": [{"name": "degree"}]}


def ask(people: Service, name: str, who: str = "ana", epsilon: str = "0.1") -> httpx.Response:
    body = {"dataset": name, "epsilon": epsilon, "query": QUERY}
    return people(who, "POST", "/v1/queries", json=body)


@pytest.fixture
def shop(people: Service) -> Service:
    for name in ("one", "two"):
        people.dataset("olga", name=name)
        people.grant("olga", name, "ana", "1")
    return people


def verification(people: Service, who: str) -> Any:
    reply = people(who, "GET", "/v1/ledger/verification")
    assert reply.status_code == 200, reply.text
    return reply.json()


def tamper(people: Service, statement: str) -> None:
    with closing(sqlite3.connect(people.settings.data / "privypurse.db")) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        connection.commit()


def test_everyone_verifies_what_they_may_see(shop: Service) -> None:
    shop.user("ben", "analyst")
    shop.grant("olga", "two", "ben", "1")
    assert ask(shop, "one").status_code == 201
    assert ask(shop, "two", "ben").status_code == 201
    for who, accounts, entries in (("ana", 2, 3), ("ben", 1, 2), ("olga", 5, 9), ("otto", 5, 9)):
        result = verification(shop, who)
        assert len(result.pop("head")) == 64
        parts = result.pop("parts")
        assert parts["chains"]["at"] == parts["meaning"]["at"] is not None
        assert result == {
            "valid": True,
            "valid_since": None,
            "accounts": accounts,
            "entries": entries,
            "first_bad": None,
        }


def test_the_first_bad_row_is_named_to_those_it_concerns(shop: Service) -> None:
    shop.user("ben", "analyst")
    shop.grant("olga", "two", "ben", "1")
    ask(shop, "one")
    ask(shop, "two", "ben")
    tamper(shop, "UPDATE entry SET actor = actor + 1 WHERE account_id = 2 AND seq = 2")
    for who in ("ana", "olga", "otto"):
        result = verification(shop, who)
        assert not result["valid"]
        assert result["first_bad"] == {
            "table": "entry",
            "row": "account 2, entry 2",
            "reason": "is not what its digest was made of",
        }
    # Everybody learns that the ledger is not valid, and nobody sees a row of others.
    result = verification(shop, "ben")
    assert not result["valid"]
    assert result["first_bad"]["row"] == "a row of others"


def test_a_limit_over_all_datasets(shop: Service) -> None:
    assert ask(shop, "one", epsilon="0.3").status_code == 201
    put = ("ada", "PUT", "/v1/users/ana/budget")
    reply = shop(*put, json={"epsilon": "0.2"})
    assert (reply.status_code, reply.json()["type"]) == (409, "/problems/below-spent")
    assert reply.json()["spent"] == {"epsilon": "0.3", "delta": "0"}
    assert "overall" not in shop("ana", "GET", "/v1/budgets").json()
    reply = shop(*put, json={"epsilon": "0.5"})
    standing = {
        "allowance": {"epsilon": "0.5", "delta": "0"},
        "spent": {"epsilon": "0.3", "delta": "0"},
        "remaining": {"epsilon": "0.2", "delta": "0"},
    }
    assert (reply.status_code, reply.json()) == (200, {"analyst": "ana", **standing})
    assert shop("ana", "GET", "/v1/budgets").json()["overall"] == standing
    refused = ask(shop, "two", epsilon="0.3")
    assert refused.json()["type"].endswith("budget-exhausted")
    assert refused.json()["remaining"]["epsilon"] == "0.2"
    assert ask(shop, "two", epsilon="0.2").status_code == 201
    assert verification(shop, "otto")["valid"]
    kinds = [e["account"] for e in shop("ana", "GET", "/v1/ledger").json()["items"]]
    assert kinds.count("analyst_total") == 3
    for who in ("olga", "nobody"):
        assert shop("ada", "PUT", f"/v1/users/{who}/budget", json={"epsilon": 1}).status_code == 404


def test_the_audit_trail_tells_who_changed_what(shop: Service) -> None:
    shop("ada", "PUT", "/v1/users/ana/budget", json={"epsilon": "0.5"})
    shop("olga", "DELETE", "/v1/datasets/two/records")
    shop("ada", "PATCH", "/v1/users/otto", json={"roles": ["auditor", "analyst"]})
    lines: list[Any] = []
    cursor = ""
    while cursor is not None:
        page = shop("otto", "GET", f"/v1/audit?limit=3{cursor}").json()
        lines += page["items"]
        cursor = f"&cursor={page['next']}" if page["next"] else None
    assert [(line["actor"], line["action"], line["subject"]) for line in lines[:4]] == [
        ("ada", "user.update", "otto"),
        ("olga", "records.withdraw", "two"),
        ("ada", "budget.overall", "ana"),
        ("olga", "budget.set", "two/ana"),
    ]
    actions = {line["action"] for line in lines}
    assert actions >= {"user.create", "records.upload", "dataset.register", "user.bootstrap"}
    assert "records.publish" not in actions
    assert "pp_" not in str(lines)
    bad = shop("otto", "GET", "/v1/audit?cursor=x")
    assert bad.status_code == 422


def test_refusals_are_counted_beside_the_ledger(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(shop, "one", epsilon="5")
    ask(shop, "one", epsilon="5")
    ask(shop, "nowhere")
    services = shop.client.app.state.services  # type: ignore[attr-defined]
    refusals = services.refusals

    async def runs(*_: object) -> None:
        raise StillRunning(UUID(int=1))

    with monkeypatch.context() as patch:
        patch.setattr(services.ledger, "reserve", runs)
        assert ask(shop, "one").status_code == 409
    refusals.write()
    rows = [(row.analyst, row.dataset, row.type, row.refusals) for row in refusals.since(0)]
    assert sorted(rows) == [
        ("ana", "", "not-found", 1),
        ("ana", "one", "budget-exhausted", 2),
        ("ana", "one", "still-running", 1),
    ]
    # The ledger holds the first entries of Ana's two accounts, and none for the refusals.
    assert len(shop("ana", "GET", "/v1/ledger").json()["items"]) == 2


def test_the_command_line_has_what_the_operator_needs() -> None:
    names = {str(command.name or command.callback.__name__) for command in cli.registered_commands}  # type: ignore[union-attr]
    assert names >= {"serve", "verify", "receipt", "backup", "accept_rollback", "migrate"}
