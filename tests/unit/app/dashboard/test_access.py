"""Access to every page by every role, tested over all routes of the application."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from app.dashboard.navigation import INNER, LINKS
from app.dashboard.pages import Page
from app.http.access import ROLES
from app.http.openapi import routes_of
from tests.support.browser import SignIn

PEOPLE = {"ada": "admin", "olga": "owner", "ana": "analyst", "otto": "auditor"}

#: The roles that may use each method and path. "session" is every signed-in user, "" everybody.
CONTRACT = {
    "GET /ui": "session",
    "GET /ui/": "",
    "GET /ui/sign-in": "",
    "POST /ui/sign-in": "",
    "GET /ui/sign-in/provider": "",
    "GET /ui/sign-in/return": "",
    "GET /ui/sign-in/leave": "",
    "POST /ui/sign-out": "session",
    "GET /ui/keys": "session",
    "POST /ui/keys": "session",
    "POST /ui/keys/{id}/revoke": "session",
    "GET /ui/notices": "session",
    "GET /ui/help": "session",
    "GET /ui/help/{page}": "session",
    "GET /ui/budgets": "analyst",
    "GET /ui/budgets/{dataset}": "analyst",
    "GET /ui/ask": "analyst",
    "POST /ui/ask": "analyst",
    "GET /ui/ask/again": "analyst",
    "POST /ui/ask/quote": "analyst",
    "GET /ui/datasets": "owner analyst auditor",
    "GET /ui/datasets/{name}": "owner analyst auditor",
    "GET /ui/datasets/{name}/mock.csv": "owner analyst auditor",
    "POST /ui/datasets/{name}/records": "owner",
    "POST /ui/datasets/{name}/nodes": "owner",
    "POST /ui/datasets/{name}/withdraw": "owner",
    "GET /ui/datasets/{name}/requests": "owner analyst",
    "POST /ui/datasets/{name}/requests": "analyst",
    "GET /ui/datasets/{name}/requests/{id}": "owner",
    "POST /ui/datasets/{name}/requests/{id}": "owner",
    "POST /ui/datasets/{name}/requests/{id}/erase": "owner analyst",
    "GET /ui/datasets/{name}/certificate": "owner auditor",
    "GET /ui/queries/{query_id}/certificate": "analyst",
    "GET /ui/datasets/{name}/source": "owner",
    "POST /ui/datasets/{name}/source": "owner",
    "POST /ui/datasets/{name}/source/pull": "owner",
    "GET /ui/datasets/{name}/description": "owner",
    "GET /ui/register": "owner",
    "POST /ui/register": "owner",
    "POST /ui/register/draft": "owner",
    "GET /ui/grants": "owner auditor",
    "GET /ui/grants/{dataset}": "owner auditor",
    "POST /ui/grants/{dataset}": "owner",
    "POST /ui/grants/{dataset}/cap": "owner",
    "GET /ui/verification": "analyst owner auditor",
    "POST /ui/verification": "analyst owner auditor",
    "GET /ui/refusals": "auditor",
    "GET /ui/refusals.csv": "auditor",
    "GET /ui/audit": "auditor",
    "GET /ui/audit.csv": "auditor",
    "GET /ui/users": "admin",
    "POST /ui/users": "admin",
    "GET /ui/users/{name}": "admin",
    "POST /ui/users/{name}": "admin",
    "POST /ui/users/{name}/keys": "admin",
    "POST /ui/users/{name}/keys/{id}/revoke": "admin",
    "GET /ui/health": "admin",
    "GET /ui/ledger": "analyst owner auditor",
    "GET /ui/ledger.csv": "analyst owner auditor",
    "GET /ui/queries": "analyst owner auditor",
    "GET /ui/queries/running": "analyst owner auditor",
    "GET /ui/queries/{query_id}": "analyst owner auditor",
    "GET /ui/queries/{query_id}/answer": "analyst",
    "POST /ui/queries/{query_id}/cancel": "analyst",
    "GET /ui/{path:path}": "",
}

#: Pages that the navigation does not link to.
BEHIND = {
    "/ui",
    "/ui/",
    "/ui/sign-in",
    "/ui/sign-in/provider",
    "/ui/sign-in/return",
    "/ui/sign-in/leave",
    "/ui/ledger.csv",
    "/ui/audit.csv",
    "/ui/refusals.csv",
    "/ui/queries/running",
    "/ui/register",
    "/ui/ask/again",
}


def pages(application: FastAPI) -> dict[str, Page]:
    return {
        f"{method} {route.path}": route
        for route in routes_of(application)
        if route.path.startswith("/ui")
        for method in route.methods or ()
        if isinstance(route, Page)
    }


def test_the_pages_are_those_of_the_table(application: FastAPI) -> None:
    below = [route for route in routes_of(application) if route.path.startswith("/ui")]
    assert all(isinstance(route, Page) for route in below)
    served = {
        name: ""
        if route.access.public
        else ("session" if route.access.roles == ROLES else " ".join(sorted(route.access.roles)))
        for name, route in pages(application).items()
    }
    assert served == {name: " ".join(sorted(who.split())) for name, who in CONTRACT.items()}


@pytest.mark.long
def test_every_role_on_every_page(application: FastAPI, sign_in: SignIn) -> None:
    wrong: list[Any] = []
    browsers = {who: sign_in(who) for who in PEOPLE}
    nobody = sign_in(None)
    for name, route in pages(application).items():
        method, path = name.split()[0], route.path.split(":")[0].replace("{path", "x")
        path = path.format(**dict.fromkeys(route.param_convertors, "absent"))
        if path in ("/ui/sign-in", "/ui/sign-out"):
            continue  # Signing in and out is tested in test_sessions.py.
        for who, browser in ({None: nobody} | browsers).items():
            if method == "GET":
                reply = browser.client.get(path)
            else:
                reply = browser.post(path)
            at_entrance = reply.status_code == 303 and "sign-in" in reply.headers["location"]
            allowed = route.access.public or (who is not None and PEOPLE[who] in route.access.roles)
            if reply.status_code >= 500:
                wrong.append((name, who, reply.status_code))
            if who is None and not route.access.public:
                wrong += [(name, who, reply.status_code)] * (not at_entrance)
            else:
                wrong += [(name, who, reply.status_code)] * (
                    at_entrance or (reply.status_code == 403) == allowed
                )
    assert wrong == []


@pytest.mark.parametrize("name", ["%00", "%ff", "%ed%a0%80", "..%2f..", "a" * 5000])
def test_hostile_names_are_pages_that_do_not_exist(
    application: FastAPI, sign_in: SignIn, name: str
) -> None:
    browsers = {PEOPLE[who]: sign_in(who) for who in PEOPLE}
    for page, route in pages(application).items():
        if page.startswith("GET") and route.param_convertors and not route.access.public:
            browser = browsers[min(route.access.roles)]
            path = route.path.format(**dict.fromkeys(route.param_convertors, name))
            assert browser.client.get(path).status_code in (404, 422), page


@pytest.mark.parametrize("query", ["dataset=%00", "dataset=a%20b", "cursor=%00", "kind=%00"])
def test_hostile_filters_are_pages_too(application: FastAPI, sign_in: SignIn, query: str) -> None:
    browsers = {PEOPLE[who]: sign_in(who) for who in PEOPLE}
    filter_name = query.partition("=")[0]
    filtered = [
        (page, route)
        for page, route in pages(application).items()
        if filter_name in {parameter.name for parameter in route.dependant.query_params}
        and not route.param_convertors
    ]
    assert filtered
    for page, route in filtered:
        reply = browsers[min(route.access.roles)].client.get(f"{route.path}?{query}")
        assert reply.status_code in (200, 404, 422), page
        assert "</html>" in reply.text or route.path.endswith(".csv"), page


def test_every_link_leads_to_a_page_for_the_same_people(application: FastAPI) -> None:
    served = pages(application)
    links = (*LINKS, *INNER)
    assert {link.path: link.access for link in links} == {
        link.path: served[f"GET {link.path}"].access for link in links
    }
    # The navigation links to every page whose path contains no name, except the pages in BEHIND.
    reached = {link.path for link in LINKS} | BEHIND
    assert {n.split()[1] for n in CONTRACT if n.startswith("GET") and "{" not in n} == reached
