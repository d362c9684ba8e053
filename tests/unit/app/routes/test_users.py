"""Users, roles, keys."""

from __future__ import annotations

import pytest

from tests.support.service import GRAPH, Service


def test_the_first_key_is_the_admins_and_lies_in_its_file(service: Service) -> None:
    file = service.settings.bootstrap_key_file
    assert file.stat().st_mode & 0o777 == 0o600
    me = service("root", "GET", "/v1/me")
    assert me.status_code == 200
    assert me.json()["roles"] == ["admin"]


def test_a_created_user_can_use_the_key_that_is_shown_once(service: Service) -> None:
    reply = service("root", "POST", "/v1/users", json={"name": "ana", "roles": ["analyst"]})
    assert reply.status_code == 201
    user = reply.json()
    assert set(user) == {"name", "roles", "key", "key_id"}
    assert user["key"].startswith(f"pp_{user['key_id']}_")
    service.keys["ana"] = user["key"]
    assert service("ana", "GET", "/v1/me").json() == {"name": "ana", "roles": ["analyst"]}
    listed = service("root", "GET", "/v1/users").json()
    assert listed["items"][0]["name"] == "ana"
    assert user["key"] not in str(listed)
    for taken in ("ana", "Ana", "ANA", "Admin"):
        again = service("root", "POST", "/v1/users", json={"name": taken, "roles": ["owner"]})
        assert (again.status_code, again.json()["type"]) == (409, "/problems/already-exists")
        assert again.json()["detail"].startswith("the name is taken")


def test_lists_come_in_pages_newest_first(service: Service) -> None:
    for name in ("a", "b", "c"):
        service.user(name, "analyst")
    names, cursor = [], None
    while True:
        suffix = "" if cursor is None else f"&cursor={cursor}"
        page = service("root", "GET", f"/v1/users?limit=2{suffix}").json()
        names += [user["name"] for user in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names[:3] == ["c", "b", "a"]
    assert len(names) == len(set(names)) == 4
    for query in ("limit=0", "limit=1001", "limit=x", "cursor=nonsense", "cursor=%00"):
        reply = service("root", "GET", f"/v1/users?{query}")
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid-request")


def test_roles_change_and_a_disabled_users_keys_stop(people: Service) -> None:
    path = "/v1/users/ana"
    reply = people("ada", "PATCH", path, json={"roles": ["analyst", "owner"]})
    assert (reply.status_code, reply.json()["roles"]) == (200, ["analyst", "owner"])
    assert people("ada", "PATCH", path, json={"disabled": True}).json()["disabled"] is True
    assert people("ana", "GET", "/v1/me").status_code == 401
    people("ada", "PATCH", path, json={"disabled": False})
    assert people("ana", "GET", "/v1/me").status_code == 200
    nothing = people("ada", "PATCH", path, json={})
    assert nothing.status_code == 422
    assert nothing.json()["errors"][0]["msg"] == "at least one of roles and disabled is required"
    roleless = people("ada", "PATCH", path, json={"roles": []})
    assert roleless.json()["errors"][0]["msg"].startswith("List should have at least 1 item")
    assert people("ada", "PATCH", "/v1/users/nobody", json={"disabled": True}).status_code == 404


def test_the_last_admin_stays(service: Service) -> None:
    name = service("root", "GET", "/v1/me").json()["name"]
    for change in ({"disabled": True}, {"roles": ["owner"]}):
        reply = service("root", "PATCH", f"/v1/users/{name}", json=change)
        assert (reply.status_code, reply.json()["type"]) == (409, "/problems/last-admin")


def test_keys_are_issued_listed_and_revoked(people: Service) -> None:
    issued = people("ana", "POST", "/v1/users/ana/keys").json()
    people.keys["ana-2"] = issued["key"]
    assert people("ana-2", "GET", "/v1/me").json()["name"] == "ana"
    keys = people("ana", "GET", "/v1/users/ana/keys").json()["items"]
    assert {key["key_id"] for key in keys} >= {issued["key_id"]}
    plain, restrictions = {"key_id", "created", "last_used", "revoked"}, ("until", "datasets")
    assert all(set(key) == {*plain, *restrictions, "budget"} for key in keys)
    assert issued["key"] not in str(keys)
    assert people("ana", "DELETE", f"/v1/keys/{issued['key_id']}").status_code == 204
    assert people("ana-2", "GET", "/v1/me").status_code == 401
    by_admin = people("ada", "POST", "/v1/users/ana/keys")
    assert by_admin.status_code == 201
    assert people("ada", "DELETE", f"/v1/keys/{by_admin.json()['key_id']}").status_code == 204


def test_other_peoples_keys_do_not_exist(people: Service) -> None:
    key_id = people("ada", "POST", "/v1/users/olga/keys").json()["key_id"]
    for method, theirs, absent in (
        ("POST", "/v1/users/olga/keys", "/v1/users/nobody/keys"),
        ("GET", "/v1/users/olga/keys", "/v1/users/nobody/keys"),
        ("DELETE", f"/v1/keys/{key_id}", "/v1/keys/0123456789abcdef"),
    ):
        seen = [people("ana", method, path) for path in (theirs, absent)]
        for reply in seen:
            assert reply.status_code == 404
        bodies = [{**reply.json(), "request_id": ""} for reply in seen]
        assert bodies[0] == bodies[1]
    assert people("olga", "GET", "/v1/me").status_code == 200


def test_keys_that_are_none(people: Service) -> None:
    key = people.keys["ana"]
    for header in (
        "",
        key,
        f"Basic {key}",
        "Bearer",
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        "Bearer pp__",
        "Bearer " + "a" * 10_000,
        "Bearer é",
    ):
        reply = people.client.get("/v1/me", headers={"Authorization": header.encode("latin-1")})
        assert reply.status_code == 401, header
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json()["type"] == "/problems/unauthenticated"


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_is_a_folder_in_a_path_is_refused(people: Service, name: str) -> None:
    user = people("root", "POST", "/v1/users", json={"name": name, "roles": ["owner"]})
    dataset = people("olga", "POST", "/v1/datasets", json={**GRAPH, "name": name})
    for reply in (user, dataset):
        assert reply.status_code == 422
        (error,) = reply.json()["errors"]
        assert error["loc"][-1] == "name"
    people.user("...", "owner")
