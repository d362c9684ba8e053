"""Requests for budget: who may make and decide them, what a grant sets, and where texts are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from app.usecases.accounts import budget_requests
from storage.assurance.verification import verify
from storage.database.tables import budget_account, budget_request, journal
from storage.ledger.limits import End
from tests.support.service import Service

PATH = "/v1/datasets/triangle/requests"
PURPOSE = "A report on <b>triangles</b> for the board"
REASON = "Agreed with the board on Monday"
DEGREE: dict[str, Any] = {"kind": "selection", "utilities": [{"name": "degree"}]}


def ask(service: Service, **changes: Any) -> Any:
    return service("ana", "POST", PATH, json={"epsilon": "3", "purpose": PURPOSE} | changes)


def decide(service: Service, id: str, **changes: Any) -> Any:
    body = {"decision": "grant", "reason": REASON} | changes
    return service("olga", "POST", f"{PATH}/{id}/decision", json=body)


def kinds(service: Service, who: str) -> list[str]:
    return [one["kind"] for one in service(who, "GET", "/v1/notices").json()["items"]]


def account(service: Service) -> Any:
    (one,) = service("ana", "GET", "/v1/budgets").json()["items"]
    return one


def query(service: Service, epsilon: str = "0.1") -> Any:
    body = {"dataset": "triangle", "epsilon": epsilon, "query": DEGREE}
    return service("ana", "POST", "/v1/queries", json=body)


def is_valid(service: Service) -> bool:
    return verify(service.client.app.state.services.database).valid  # type: ignore[attr-defined]


@pytest.fixture
def triangle(people: Service) -> Service:
    """A dataset of olga that ana sees by an allowance of 1."""
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    return people


def test_a_request_is_granted_and_queried(triangle: Service) -> None:
    sent = ask(triangle)
    assert sent.status_code == 201
    assert sent.json() | {"id": "", "created": ""} == {
        "id": "",
        "created": "",
        "dataset": "triangle",
        "analyst": "ana",
        "epsilon": "3",
        "delta": "0",
        "until": None,
        "purpose": PURPOSE,
        "status": "open",
        "decided": None,
        "granted": None,
        "granted_until": None,
        "reason": None,
    }
    assert "request_made" in kinds(triangle, "olga")
    assert "request_made" not in kinds(triangle, "ana")
    assert triangle("olga", "GET", PATH).json()["items"] == [sent.json()]
    assert ask(triangle).json()["type"] == "/problems/request-open"
    decided = decide(triangle, sent.json()["id"], epsilon="2")
    assert (decided.status_code, decided.json()["status"]) == (200, "granted")
    assert decided.json()["granted"] == {"epsilon": "2", "delta": "0"}
    assert account(triangle)["allowance"]["epsilon"] == "2"
    assert kinds(triangle, "ana") == ["request_decided"]
    assert "request_made" not in kinds(triangle, "olga")
    again = decide(triangle, sent.json()["id"], epsilon="9")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/request-decided")
    assert account(triangle)["allowance"]["epsilon"] == "2"
    assert query(triangle, "2").status_code == 201
    assert is_valid(triangle)


def test_a_refusal_sets_nothing(triangle: Service) -> None:
    id = ask(triangle).json()["id"]
    assert decide(triangle, id, decision="refuse", epsilon="1").status_code == 422
    assert decide(triangle, id, decision="refuse").json()["reason"] == REASON
    assert account(triangle)["allowance"]["epsilon"] == "1"
    assert ask(triangle).status_code == 201


def test_a_grant_that_cannot_be_set_decides_nothing(triangle: Service) -> None:
    assert query(triangle, "0.5").status_code == 201
    id = ask(triangle).json()["id"]
    assert decide(triangle, id, epsilon="0.25").json()["type"] == "/problems/below-spent"
    (row,) = triangle("ana", "GET", PATH).json()["items"]
    assert (row["status"], row["reason"]) == ("open", None)
    assert is_valid(triangle)


def test_an_allowance_ends(triangle: Service) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    id = ask(triangle, until=until).json()["id"]
    decide(triangle, id)
    assert account(triangle)["until"].startswith(until[:19])
    assert query(triangle).status_code == 201
    services = triangle.client.app.state.services  # type: ignore[attr-defined]
    soon = services.database.now_us() + 300_000
    ana = services.users.find("ana").id
    dataset = services.datasets.find("triangle")
    services.ledger.grant(
        dataset.id,
        ana,
        services.ledger.account(dataset.id, ana).account.limit,
        actor_id=dataset.owner_id,
        end=End(soon),
    )
    assert is_valid(triangle)
    while services.database.now_us() <= soon:
        pass
    refused = query(triangle)
    assert refused.json()["type"] == "/problems/budget-exhausted"
    nothing = {"epsilon": "0", "delta": "0"}
    assert refused.json()["remaining"] == refused.json()["largest_affordable"] == nothing
    quote = {"dataset": "triangle", "epsilon": "0.1", "query": DEGREE}
    quoted = triangle("ana", "POST", "/v1/quotes", json=quote).json()
    assert (quoted["affordable"], quoted["fits_more"]) == (False, 0)
    assert account(triangle)["remaining"]["epsilon"] == "0"
    (notice,) = triangle("ana", "GET", "/v1/notices").json()["items"][:1]
    assert notice["text"] == "Your allowance for triangle has ended."
    ended = account(triangle)["until"]
    # A new grant that names no end keeps the end of the allowance.
    triangle.grant("olga", "triangle", "ana", "4")
    assert account(triangle)["until"] == ended
    assert query(triangle).json()["type"] == "/problems/budget-exhausted"
    assert grant_until(triangle, until=None)["epsilon"] == "4"
    assert "until" not in account(triangle)
    assert query(triangle).status_code == 201
    assert is_valid(triangle)
    services.database.write(
        lambda c: c.execute(update(budget_account).values(until_us=soon + 10**12))
    )
    assert not is_valid(triangle)


def grant_until(service: Service, **end: str | None) -> Any:
    """Grant an ε of 4 with this end, or without a word of it. Returns the allowance."""
    body = {"epsilon": "4", **end}
    reply = service("olga", "PUT", "/v1/datasets/triangle/budgets/ana", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["allowance"]


def test_a_grant_that_names_no_end_keeps_it(triangle: Service) -> None:
    until = "2100-01-01T00:00:00Z"
    decide(triangle, ask(triangle, until=until).json()["id"])
    grant_until(triangle)
    assert account(triangle)["until"] == until
    decide(triangle, ask(triangle).json()["id"])
    assert account(triangle)["until"] == until
    grant_until(triangle, until="2101-01-01T02:00:00+02:00")
    assert account(triangle)["until"] == "2101-01-01T00:00:00Z"
    past = {"epsilon": "4", "until": "2001-01-01T00:00:00Z"}
    reply = triangle("olga", "PUT", "/v1/datasets/triangle/budgets/ana", json=past)
    assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid-request")
    assert account(triangle)["until"] == "2101-01-01T00:00:00Z"
    grant_until(triangle, until=None)
    assert "until" not in account(triangle)
    assert is_valid(triangle)


HOSTILE: list[dict[str, Any]] = [
    {"purpose": "x" * 2001},
    {"purpose": "  "},
    {"purpose": "two\nlines"},
    {"purpose": "a\u202eb"},
    {"purpose": "a\u0000b"},
    {"purpose": "a\u2028b"},
    {"purpose": None},
    {"until": "2001-01-01T00:00:00Z"},
    {"until": "2100-01-01T00:00:00"},
    {"epsilon": "-1"},
    {"more": 1},
]


def test_hostile_requests_are_refused(triangle: Service) -> None:
    for changes in HOSTILE:
        reply = ask(triangle, **changes)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid-request")
    assert triangle("olga", "GET", PATH).json()["items"] == []
    longest = "x" * 2000
    assert ask(triangle, purpose=longest).json()["purpose"] == longest


def test_requests_of_a_day_are_limited(triangle: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_requests, "MOST_A_DAY", 2)
    for _ in range(2):
        id = ask(triangle).json()["id"]
        assert triangle("ana", "DELETE", f"{PATH}/{id}").status_code == 204
    refused = ask(triangle)
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/rate-limited")
    assert len(triangle("ana", "GET", PATH).json()["items"]) == 2
    database = triangle.client.app.state.services.database  # type: ignore[attr-defined]
    earlier = budget_request.c.created_us - budget_requests.DAY_US - 1
    before = update(budget_request).values(created_us=earlier)
    database.write(lambda connection: connection.execute(before))
    assert ask(triangle).status_code == 201


def test_who_may_request_and_decide(triangle: Service) -> None:
    triangle.user("ben", "analyst")
    triangle.user("oscar", "owner")
    body = {"epsilon": "1", "purpose": PURPOSE}
    assert triangle("ben", "POST", PATH, json=body).status_code == 404
    triangle.grant("olga", "triangle", "ben", "0")  # An allowance of 0 only shows ben the dataset.
    assert triangle("ben", "POST", PATH, json=body).status_code == 201
    id = ask(triangle).json()["id"]
    assert [one["id"] for one in triangle("ana", "GET", PATH).json()["items"]] == [id]
    assert len(triangle("olga", "GET", PATH).json()["items"]) == 2
    grant = {"decision": "grant", "reason": REASON}
    decision = f"{PATH}/{id}/decision"
    assert triangle("oscar", "POST", decision, json=grant).status_code == 404
    triangle.dataset("oscar", name="square")
    elsewhere = decision.replace("triangle", "square")
    assert triangle("oscar", "POST", elsewhere, json=grant).status_code == 404
    for who in ("ben", "oscar"):
        assert triangle(who, "DELETE", f"{PATH}/{id}").status_code == 404
    key = triangle("ana", "POST", "/v1/users/ana/keys", json={"epsilon": "0.1"}).json()["key"]
    triangle.keys["notebook"] = key
    assert triangle("notebook", "POST", PATH, json=body).status_code == 403
    assert triangle("notebook", "GET", PATH).status_code == 403
    assert triangle("notebook", "DELETE", f"{PATH}/{id}").status_code == 403
    (own,) = triangle("ana", "GET", PATH).json()["items"]
    assert (own["status"], own["purpose"]) == ("open", PURPOSE)
    # A key of the owner whose only restriction is an end date may decide requests. So it may read
    # them too.
    ends = {"until": "2100-01-01T00:00:00Z"}
    triangle.keys["desk"] = triangle("olga", "POST", "/v1/users/olga/keys", json=ends).json()["key"]
    assert len(triangle("desk", "GET", PATH).json()["items"]) == 2


def test_texts_are_in_no_journal_and_can_be_erased(
    triangle: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    id = ask(triangle).json()["id"]
    decide(triangle, id, epsilon="2")
    services = triangle.client.app.state.services  # type: ignore[attr-defined]
    with services.database.read() as connection:
        facts = connection.execute(select(journal.c.fact)).scalars().all()
        salts = connection.execute(select(budget_request.c.salt)).scalars().all()
    audited = triangle("otto", "GET", "/v1/audit").text
    assert "request.grant" in audited
    assert [json.loads(fact)["action"] for fact in facts if "purpose_digest" in fact] == [
        *("request.make", "request.grant")
    ]
    logged = "".join(capfd.readouterr())
    for text in (*facts, audited, logged):
        assert not any(hidden in text for hidden in (PURPOSE, REASON, salts[0].hex()))
    assert "digest" not in audited
    assert triangle("ana", "DELETE", f"{PATH}/{id}").status_code == 204
    assert triangle("olga", "DELETE", f"{PATH}/{id}").status_code == 204
    (row,) = triangle("olga", "GET", PATH).json()["items"]
    assert (row["purpose"], row["reason"], row["status"]) == (None, None, "granted")
    with services.database.read() as connection:
        (row,) = connection.execute(select(budget_request)).all()
    assert (row.purpose, row.reason, row.salt) == (None, None, None)
    assert is_valid(triangle)
    open_one = ask(triangle).json()["id"]
    assert triangle("ana", "DELETE", f"{PATH}/{open_one}").status_code == 204
    assert triangle("ana", "GET", PATH).json()["items"][0]["status"] == "withdrawn"
    assert decide(triangle, open_one).json()["type"] == "/problems/request-decided"


def test_a_grant_keeps_the_composition_of_an_account(triangle: Service) -> None:
    body = {"epsilon": "1", "composition_delta": "0.000001"}
    triangle("olga", "PUT", "/v1/datasets/triangle/budgets/ana", json=body)
    decide(triangle, ask(triangle).json()["id"])
    assert account(triangle)["allowance"]["epsilon"] == "3"
    assert account(triangle)["allowance"]["composition_delta"] == "0.000001"
    assert decide(triangle, ask(triangle).json()["id"], epsilon="1001").status_code == 422


def test_a_change_in_the_same_instant_is_not_lost(
    triangle: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = ask(triangle).json()["id"]
    changed = {"composition_delta": "0.000001", "until": "2100-01-01T00:00:00Z"}
    ledger = triangle.client.app.state.services.ledger  # type: ignore[attr-defined]
    grant = ledger.grant

    def grant_after_another(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(ledger, "grant", grant)
        body = {"epsilon": "1"} | changed
        assert triangle("olga", "PUT", "/v1/datasets/triangle/budgets/ana", json=body).is_success
        return grant(*arguments, **options)

    monkeypatch.setattr(ledger, "grant", grant_after_another)
    decided = decide(triangle, id)
    assert (decided.status_code, decided.json()["granted_until"]) == (200, changed["until"])
    after = account(triangle)
    assert after["allowance"]["epsilon"] == "3"
    assert after["allowance"]["composition_delta"] == changed["composition_delta"]
    assert after["until"] == changed["until"]
    assert is_valid(triangle)
