"""The pages of an admin: users, keys, limits and the state of the service."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.browser import SignIn, words
from tests.support.service import Service

KEY = re.compile(r"pp_[0-9a-f]{16}_[0-9a-f]{64}")


def test_a_user_is_made_with_a_key_that_is_shown_once(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("ada")
    page = browser.post("/ui/users", name="nina", roles=["analyst", "owner"])
    key = KEY.search(page.text)
    assert key is not None
    people.keys["nina"] = key[0]
    assert people("nina", "GET", "/v1/me").json()["roles"] == ["analyst", "owner"]
    assert "nina analyst, owner" in browser.text("/ui/users")
    assert not KEY.search(browser.get("/ui/users/nina").text)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"name": "ana", "roles": ["analyst"]}, 409, "Already exists"),
        ({"name": "nina", "roles": []}, 422, "at least 1 item"),
        ({"name": "nina", "roles": ["king"]}, 422, "Input should be 'admin'"),
        ({"name": "a b", "roles": ["analyst"]}, 422, "pattern"),
    ],
)
def test_what_is_no_user(sign_in: SignIn, fields: dict[str, Any], status: int, said: str) -> None:
    page = sign_in("ada").post("/ui/users", **fields)
    assert (page.status_code, said in words(page.text)) == (status, True)
    assert "`" not in words(page.text)


def test_roles_state_and_limit(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("ada")
    assert browser.post("/ui/users/ana", do="roles", roles=["auditor"]).status_code == 303
    assert people("ana", "GET", "/v1/me").json()["roles"] == ["auditor"]
    browser.post("/ui/users/ana", do="roles", roles=["analyst"])
    browser.post("/ui/users/ana", do="disable")
    assert people("ana", "GET", "/v1/me").status_code == 401
    assert "ana disabled" in browser.text("/ui/users/ana")
    browser.post("/ui/users/ana", do="enable")
    assert people("ana", "GET", "/v1/me").status_code == 200
    assert "None: only the allowances" in browser.text("/ui/users/ana")
    browser.post("/ui/users/ana", do="budget", epsilon="2.5")
    assert "ε 2.5 left of ε 2.5" in browser.text("/ui/users/ana")
    refused = browser.post("/ui/users/ana", do="budget", epsilon="x")
    assert (refused.status_code, "not a decimal number" in refused.text) == (422, True)


def test_the_last_admin_stays(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("ada")
    assert browser.post("/ui/users/admin", do="disable").status_code == 303
    page = browser.post("/ui/users/ada", do="roles", roles=["owner"])
    assert (page.status_code, "The last admin" in page.text) == (409, True)
    assert people("ada", "GET", "/v1/me").json()["roles"] == ["admin"]


def test_keys_of_others(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("ada")
    page = browser.post("/ui/users/ana/keys")
    key = KEY.search(page.text)
    assert key is not None
    key_id = key[0].split("_")[1]
    assert browser.post(f"/ui/users/otto/keys/{key_id}/revoke").status_code == 404
    people.keys["ana"] = key[0]
    assert people("ana", "GET", "/v1/me").status_code == 200
    assert browser.post(f"/ui/users/ana/keys/{key_id}/revoke").status_code == 303
    assert people("ana", "GET", "/v1/me").status_code == 401


def test_nobody_of_that_name(sign_in: SignIn) -> None:
    browser = sign_in("ada")
    assert browser.get("/ui/users/nobody").status_code == 404
    for path in ("/ui/users/nobody", "/ui/users/nobody/keys", "/ui/users/nobody/keys/x/revoke"):
        assert browser.post(path, do="disable").status_code == 404


def test_health_says_what_the_probes_say(
    people: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = sign_in("ada")
    text = browser.text("/ui/health")
    assert "The service can work" in text
    settings = people.settings
    for limit in (settings.query_limit, settings.table_cells, settings.query_memory):
        assert f" {limit:g} " in text or f" {limit} " in text
    assert people("ada", "GET", "/version").json()["version"] in text
    database = people.client.app.state.services.database  # type: ignore[attr-defined]
    monkeypatch.setattr(type(database), "ready", lambda _: False)
    assert "The service cannot work" in browser.text("/ui/health")
