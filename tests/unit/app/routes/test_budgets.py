"""Allowances: who grants them, what they show, and that they never fall below what is spent."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.usecases import charge_sums
from storage.queries.charges import ChargeRow, charges_between
from tests.support.patience import PATIENCE, until
from tests.support.service import Service


def test_an_owner_grants_and_everyone_concerned_sees_it(people: Service) -> None:
    name = people.dataset("olga")
    reply = people.grant("olga", name, "ana", "2.5")
    account = {
        "allowance": {"epsilon": "2.5", "delta": "0"},
        "spent": {"epsilon": "0", "delta": "0"},
        "remaining": {"epsilon": "2.5", "delta": "0"},
        "dataset": name,
        "analyst": "ana",
    }
    assert (reply.status_code, reply.json()) == (200, account)
    assert people("ana", "GET", "/v1/budgets").json() == {"items": [account], "next": None}
    for who in ("olga", "otto"):
        budgets = people(who, "GET", f"/v1/datasets/{name}/budgets").json()
        assert budgets["items"] == [{**account, "etag": reply.headers["etag"]}]
        assert budgets["cap"]["allowance"]["epsilon"] == "10"
        assert budgets["exposure"] == {
            "spent": {"epsilon": "0", "delta": "0"},
            "at_most": {"epsilon": "2.5", "delta": "0"},
        }


def test_allowances_may_add_up_to_more_than_the_cap_but_exposure_may_not(people: Service) -> None:
    name = people.dataset("olga")
    people.user("ben", "analyst")
    for analyst in ("ana", "ben"):
        assert people.grant("olga", name, analyst, "8").status_code == 200
    budgets = people("olga", "GET", f"/v1/datasets/{name}/budgets").json()
    assert budgets["exposure"]["at_most"]["epsilon"] == "10"


def test_only_analysts_have_accounts(people: Service) -> None:
    name = people.dataset("olga")
    seen = [people.grant("olga", name, who) for who in ("otto", "nobody", "a%20b", "%00")]
    assert {reply.status_code for reply in seen} == {404}
    assert len({str({**reply.json(), "request_id": ""}) for reply in seen}) == 1


def test_if_match_guards_against_changes_in_between(people: Service) -> None:
    name = people.dataset("olga")
    path = f"/v1/datasets/{name}/budgets/ana"

    def put(epsilon: str, etag: str | None) -> tuple[int, str | None]:
        headers = {} if etag is None else {"If-Match": etag}
        reply = people("olga", "PUT", path, json={"epsilon": epsilon}, headers=headers)
        return reply.status_code, reply.headers.get("etag")

    assert put("1", '"1-1"')[0] == 412
    status, first = put("1", None)
    assert status == 200
    assert first is not None
    status, second = put("2", first)
    assert status == 200
    assert second != first
    assert put("3", first)[0] == 412
    assert put("3", "*")[0] == 200


def test_the_ledger_lists_grants_to_whom_they_concern(people: Service) -> None:
    name = people.dataset("olga")
    people.user("ben", "analyst")
    people.grant("olga", name, "ana", "2")
    people.grant("olga", name, "ana", "1.5")
    kinds = [
        (entry["account"], entry["kind"], entry["epsilon"], entry["actor"])
        for entry in people("ana", "GET", "/v1/ledger").json()["items"]
    ]
    assert kinds == [
        ("analyst", "limit_change", "-0.5", "olga"),
        ("analyst", "genesis", "2", "olga"),
    ]
    assert people("ben", "GET", "/v1/ledger").json()["items"] == []
    for who in ("olga", "otto"):
        entries = people(who, "GET", f"/v1/ledger?dataset={name}").json()["items"]
        assert [entry["account"] for entry in entries] == ["analyst", "analyst", "cap"]
    assert people("otto", "GET", "/v1/ledger?dataset=other").json()["items"] == []
    page = people("otto", "GET", "/v1/ledger?limit=1").json()
    rest = people("otto", "GET", f"/v1/ledger?limit=5&cursor={page['next']}").json()
    assert [entry["kind"] for entry in page["items"] + rest["items"]] == [
        "limit_change",
        "genesis",
        "genesis",
    ]


def test_a_user_of_two_roles_lists_what_either_may_see(people: Service) -> None:
    people.user("olive", "owner", "analyst")
    own = people.dataset("olive", name="hers")
    other = people.dataset("olga", name="theirs")
    people.grant("olive", own, "ana")
    people.grant("olga", other, "olive")
    seen = {
        (entry["dataset"], entry["analyst"])
        for entry in people("olive", "GET", "/v1/ledger").json()["items"]
    }
    assert seen == {("hers", None), ("hers", "ana"), ("theirs", "olive")}


def test_history_is_empty_before_the_first_query(people: Service) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    for by in ("day", "kind"):
        reply = people("ana", "GET", f"/v1/budgets/{name}/history?by={by}")
        assert (reply.status_code, reply.json()) == (200, {"items": [], "next": None})
    assert people("ana", "GET", f"/v1/budgets/{name}/history?by=hour").status_code == 422


def test_forty_abandoned_histories_stall_nobody(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them waits for its statement; all others, and the probe, are answered."""
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    path = f"/v1/budgets/{name}/history"
    go_on, reached = threading.Event(), threading.Semaphore(0)

    def slow(*arguments: Any) -> list[ChargeRow]:
        reached.release()
        assert go_on.wait(PATIENCE)
        return charges_between(*arguments)

    monkeypatch.setattr(charge_sums, "charges_between", slow)
    monkeypatch.setattr(charge_sums, "SECONDS", PATIENCE)
    with ThreadPoolExecutor(40) as clients:
        replies = [clients.submit(people, "ana", "GET", path) for _ in range(40)]
        assert reached.acquire(timeout=PATIENCE)
        until(lambda: sum(reply.done() for reply in replies) >= 38)
        refusals = [reply.result() for reply in replies if reply.done()]
        assert [reply.status_code for reply in refusals] == [429] * 38
        assert all(reply.headers["Retry-After"] for reply in refusals)
        assert people(None, "GET", "/readyz").status_code == 200
        assert people("olga", "GET", f"/v1/datasets/{name}").status_code == 200
        go_on.set()
        assert sum(reply.result().status_code == 200 for reply in replies) == 2
    assert people("ana", "GET", path).json() == {"items": [], "next": None}
