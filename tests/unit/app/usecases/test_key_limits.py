"""Keys with limits over HTTP: what they may spend, see and do, and until when."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from app.contract.people import KeyInfoOut
from tests.support.service import Service

DEGREE: dict[str, Any] = {"kind": "selection", "utilities": [{"name": "degree"}]}


def ask(service: Service, who: str, dataset: str = "triangle", epsilon: str = "0.1") -> Any:
    body = {"dataset": dataset, "epsilon": epsilon, "query": DEGREE}
    return service(who, "POST", "/v1/queries", json=body)


def limited(service: Service, who: str, name: str, **restrictions: Any) -> str:
    """Issues a key to ``who`` and stores it under ``name``; returns its id."""
    reply = service(who, "POST", f"/v1/users/{who}/keys", json=restrictions)
    assert reply.status_code == 201, reply.text
    service.keys[name] = reply.json()["key"]
    return str(reply.json()["key_id"])


@pytest.fixture
def two(people: Service) -> Service:
    """Two datasets, triangle and square, and allowances of 1 for ana."""
    for name in ("triangle", "square"):
        people.dataset("olga", name=name)
        assert people.grant("olga", name, "ana").status_code == 200
    return people


def test_a_key_spends_its_own_limit_and_no_more(two: Service) -> None:
    key_id = limited(two, "ana", "notebook", epsilon="0.15")
    assert ask(two, "notebook").status_code == 201
    refused = ask(two, "notebook", "square")
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/budget-exhausted")
    assert refused.json()["remaining"]["epsilon"] == "0.05"
    assert ask(two, "ana", "square").status_code == 201
    own = two("notebook", "GET", "/v1/budgets").json()
    assert own["key"]["spent"] == {"epsilon": "0.1", "delta": "0"}
    assert [one["spent"]["epsilon"] for one in own["items"]] == ["0.1", "0.1"]
    assert "key" not in two("ana", "GET", "/v1/budgets").json()
    (listed,) = [
        one
        for one in two("ana", "GET", "/v1/users/ana/keys").json()["items"]
        if one["key_id"] == key_id
    ]
    assert listed["budget"] == own["key"]
    entries = two("ana", "GET", "/v1/ledger").json()["items"]
    assert {(one["account"], one["key"]) for one in entries} >= {("key", key_id), ("analyst", None)}
    quote = {"dataset": "triangle", "epsilon": "0.1", "query": DEGREE}
    assert two("notebook", "POST", "/v1/quotes", json=quote).json()["affordable"] is False
    assert two("ana", "POST", "/v1/quotes", json=quote).json()["affordable"] is True
    assert two("otto", "GET", "/v1/ledger/verification").json()["first_bad"] is None


def test_a_key_sees_its_datasets_alone(two: Service) -> None:
    paid = ask(two, "ana", "square").json()["id"]
    limited(two, "ana", "notebook", datasets=["triangle"])
    assert ask(two, "notebook").status_code == 201
    for method, path, json in (
        ("GET", "/v1/datasets/{}", None),
        ("GET", "/v1/budgets/{}/history", None),
        ("GET", "/v1/datasets/{}/mock", None),
        ("POST", "/v1/queries", {"epsilon": "0.1", "query": DEGREE}),
        ("POST", "/v1/quotes", {"epsilon": "0.1", "query": DEGREE}),
    ):
        bodies = []
        for name in ("square", "absent"):
            sent = {} if json is None else {"json": {**json, "dataset": name}}
            reply = two("notebook", method, path.format(name), **sent)
            assert reply.status_code == 404, path
            bodies.append({**reply.json(), "request_id": ""})
        assert bodies[0] == bodies[1]
    for path in (f"/v1/queries/{paid}", f"/v1/queries/{paid}/answer"):
        assert two("notebook", "GET", path).status_code == 404
    assert two("notebook", "DELETE", f"/v1/queries/{paid}").status_code == 404
    limited(two, "ana", "other", datasets=["square"])
    for path in ("/v1/datasets", "/v1/budgets", "/v1/queries", "/v1/ledger", "/v1/users/ana/keys"):
        everything = two("notebook", "GET", path).json()
        assert "triangle" in str(everything), path
        assert "square" not in str(everything), path


def test_a_key_with_a_limit_acts_as_an_analyst_alone(two: Service) -> None:
    roles = ["admin", "analyst", "auditor", "owner"]
    assert two("ada", "PATCH", "/v1/users/ana", json={"roles": roles}).status_code == 200
    limited(two, "ana", "with-limit", epsilon="1")
    limited(two, "ana", "with-datasets", datasets=["triangle"])
    limited(two, "ana", "with-end", until="2100-01-01T00:00:00Z")
    for name, acts_as in (
        ("with-limit", ["analyst"]),
        ("with-datasets", ["analyst"]),
        ("with-end", ["analyst", "auditor", "owner"]),
    ):
        assert two(name, "GET", "/v1/me").json() == {"name": "ana", "roles": acts_as}
        user = {"name": "eve", "roles": ["admin"]}
        assert two(name, "POST", "/v1/users", json=user).status_code == 403
        # Whoever has a restricted key must not be able to issue a key without its restrictions.
        assert two(name, "POST", "/v1/users/ana/keys").status_code == 403
    assert two.grant("with-limit", "triangle", "ana", "9").status_code == 403


def test_a_restricted_key_revokes_itself_alone(two: Service) -> None:
    key_id = limited(two, "ana", "notebook", epsilon="1")
    other = limited(two, "ana", "other")
    refused = two("notebook", "DELETE", f"/v1/keys/{other}")
    assert refused.status_code == 403
    assert refused.json()["detail"].startswith("This key has restrictions")
    assert two("notebook", "DELETE", f"/v1/keys/{key_id}").status_code == 204
    assert two("notebook", "GET", "/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("restrictions", "loc"),
    [
        ({"delta": "0.1"}, ["body"]),
        ({"epsilon": "-1"}, ["body", "epsilon"]),
        ({"epsilon": True}, ["body", "epsilon"]),
        ({"until": "2001-01-01T00:00:00Z"}, ["body", "until"]),
        ({"until": "2100-01-01T00:00:00"}, ["body", "until"]),
        ({"until": 4102444800}, ["body", "until"]),
        ({"until": "9999-12-31T23:59:59-12:00"}, ["body", "until"]),
        ({"datasets": []}, ["body", "datasets"]),
        ({"roles": ["admin"]}, ["body", "roles"]),
    ],
)
def test_restrictions_that_are_none(two: Service, restrictions: Any, loc: list[str]) -> None:
    reply = two("ana", "POST", "/v1/users/ana/keys", json=restrictions)
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["loc"] == loc


def test_a_key_is_restricted_to_datasets_that_exist_for_its_user(two: Service) -> None:
    two.dataset("olga", name="hidden")
    for name in ("hidden", "absent"):
        reply = two("ana", "POST", "/v1/users/ana/keys", json={"datasets": [name]})
        assert reply.status_code == 404
    by_admin = two("ada", "POST", "/v1/users/ana/keys", json={"datasets": ["hidden"]})
    assert by_admin.status_code == 201
    two.keys["later"] = by_admin.json()["key"]
    assert ask(two, "later", "hidden").status_code == 404
    two.grant("olga", "hidden", "ana")
    assert ask(two, "later", "hidden").status_code == 201
    owners = two("olga", "POST", "/v1/users/olga/keys", json={"epsilon": "1"})
    assert owners.status_code == 422


def test_a_page_tells_a_key_that_is_over() -> None:
    fields = {"key_id": "a", "created_us": 0, "last_used_us": None, "revoked": False}
    key = KeyInfoOut.model_validate(fields)
    ends = {"1970-01-01T00:00:01Z": True, "9999-01-01T00:00:00Z": False}
    assert not key.is_over
    for until, over in ends.items():
        ended = key.model_copy(update={"until": datetime.fromisoformat(until)})
        assert ended.is_over is over
