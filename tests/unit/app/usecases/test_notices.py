"""Notices: who is told of low budgets, new versions and frozen accounts, and who is not."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from storage.database.tables import budget_account
from storage.ledger.freezing import freeze
from tests.support.service import Service

DEGREE: dict[str, Any] = {"kind": "selection", "utilities": [{"name": "degree"}]}


def notices(service: Service, who: str) -> list[Any]:
    reply = service(who, "GET", "/v1/notices")
    assert reply.status_code == 200, reply.text
    items: list[Any] = reply.json()["items"]
    return items


def kinds(service: Service, who: str) -> list[tuple[str, str | None]]:
    return [(one["kind"], one["dataset"]) for one in notices(service, who)]


def ask(service: Service, who: str, epsilon: str, dataset: str = "triangle") -> None:
    body = {"dataset": dataset, "epsilon": epsilon, "query": DEGREE}
    assert service(who, "POST", "/v1/queries", json=body).status_code == 201


@pytest.fixture
def two(people: Service) -> Service:
    """Two datasets, triangle and square, and allowances of 1 for ana."""
    for name in ("triangle", "square"):
        people.dataset("olga", name=name)
        assert people.grant("olga", name, "ana").status_code == 200
    return people


def test_a_low_budget_is_told_to_its_analyst_alone(two: Service) -> None:
    ask(two, "ana", "0.85")
    assert kinds(two, "ana") == []  # Exactly 15 % of the budget is left, which is not low yet.
    ask(two, "ana", "0.01")
    assert kinds(two, "ana") == [("budget_low", "triangle")]
    (notice,) = notices(two, "ana")
    assert notice["account"] == "analyst"
    assert notice["text"] == "Less than 15 % of your allowance for triangle is left."
    for who in ("olga", "otto", "ada"):
        assert "budget_low" not in dict(kinds(two, who))
    two.grant("olga", "triangle", "ana", "9")
    assert kinds(two, "ana") == []


def test_limits_over_all_datasets_and_of_keys_are_low_too(two: Service) -> None:
    two("ada", "PUT", "/v1/users/ana/budget", json={"epsilon": "0.5"})
    key = {"epsilon": "0.3", "datasets": ["square"]}
    reply = two("ana", "POST", "/v1/users/ana/keys", json=key)
    two.keys["notebook"] = reply.json()["key"]
    ask(two, "notebook", "0.3", "square")
    assert [one["account"] for one in notices(two, "notebook")] == ["key"]
    ask(two, "ana", "0.2")
    assert [one["account"] for one in notices(two, "ana")] == ["analyst_total"]
    ask_more = two("ada", "PUT", "/v1/users/ana/budget", json={"epsilon": "9"})
    assert ask_more.status_code == 200
    ask(two, "ana", "0.7")
    assert kinds(two, "ana") == [("budget_low", "triangle")]
    assert "triangle" not in str(notices(two, "notebook"))


def test_a_new_version_is_told_to_its_owner_alone(two: Service) -> None:
    two.user("oscar", "owner")
    assert set(kinds(two, "olga")) == {("version_ready", "triangle"), ("version_ready", "square")}
    two.upload("olga", "square", b"source,target\n0,1\n")
    newest = notices(two, "olga")[0]
    assert (newest["dataset"], newest["version"]) == ("square", 2)
    for who in ("oscar", "ana", "otto", "ada"):
        assert kinds(two, who) == [], who
    assert two("olga", "DELETE", "/v1/datasets/square/records").status_code in (200, 204)
    assert kinds(two, "olga") == [("version_ready", "triangle")]


def test_a_frozen_account_is_told_to_those_whom_it_concerns(two: Service) -> None:
    two.user("ben", "analyst")
    services = two.client.app.state.services  # type: ignore[attr-defined]
    account = services.ledger.account(services.datasets.find("square").id, user_id(services, "ana"))
    services.database.write(lambda c: freeze(c, [account.id], services.database.now_us()))
    for who in ("ana", "otto", "olga"):
        assert ("ledger_frozen", "square") in kinds(two, who), who
    for who in ("ben", "ada"):
        assert kinds(two, who) == [], who
    with services.database.read() as connection:
        everything = connection.execute(select(budget_account.c.id)).scalars().all()
    services.database.write(lambda c: freeze(c, everything, services.database.now_us()))
    frozen = {("ledger_frozen", "square"), ("ledger_frozen", "triangle")}
    assert frozen <= set(kinds(two, "ana"))


def user_id(services: Any, name: str) -> int:
    user = services.users.find(name)
    assert user is not None
    return int(user.id)
