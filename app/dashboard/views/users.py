"""The admin's pages: people, their roles, limits and keys."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.people import KeyOut, UserChange, UserIn
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, read
from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import render
from app.http.access import ROLES, Caller, CurrentCaller, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.usecases import keys, users
from app.usecases.services import Services
from storage.errors import NotFound

pages = pages_router()

PAGE = 50
NEW: TypeAdapter[UserIn] = TypeAdapter(UserIn)
CHANGE: TypeAdapter[UserChange] = TypeAdapter(UserChange)
LIMIT: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)


@pages.get("/ui/users", dependencies=[allow("admin")])
def users_page(
    request: Request, caller: CurrentCaller, services: ServicesDep, cursor: PageCursor = None
) -> Response:
    """All users, newest first."""
    return _list(request, caller, services, cursor=cursor)


@pages.post("/ui/users", dependencies=[allow("admin")])
def create(
    request: Request, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """Make a user; the first key is on this one page and nowhere else."""
    try:
        body = read(NEW, {"name": form.get("name"), "roles": form.all("roles")})
        user = users.create(services, caller, body)
    except Exception as error:
        return _list(request, caller, services, alert=alert_of(error), form=form)
    return _one(request, user.name, caller, services, issued=user)


@pages.get("/ui/users/{name}", dependencies=[allow("admin")])
def one_user(request: Request, name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """One user: roles, state, limit and keys."""
    return _one(request, name, caller, services)


@pages.post("/ui/users/{name}", dependencies=[allow("admin")])
def change(
    request: Request, name: str, caller: CurrentCaller, services: ServicesDep, form: SentForm
) -> Response:
    """Change roles, disable, enable, or set the limit over all datasets together."""
    try:
        what = form.get("do")
        if what == "budget":
            amounts = {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"}
            users.set_overall_budget(services, caller, name, read(LIMIT, amounts))
        else:
            body: dict[str, Any] = {"disabled": what == "disable"}
            if what == "roles":
                body = {"roles": form.all("roles")}
            users.change(services, caller, name, read(CHANGE, body))
    except NotFound:
        raise
    except Exception as error:
        return _one(request, name, caller, services, alert=alert_of(error))
    return to(f"/ui/users/{name}")


@pages.post("/ui/users/{name}/keys", dependencies=[allow("admin")])
def issue_key(
    request: Request, name: str, caller: CurrentCaller, services: ServicesDep
) -> Response:
    """Issue a key for somebody; it is on this one page and nowhere else."""
    key = keys.issue(services, caller, name)
    return _one(request, name, caller, services, issued=key)


@pages.post("/ui/users/{name}/keys/{id}/revoke", dependencies=[allow("admin")])
def revoke_key(name: str, id: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Revoke a key of somebody."""
    keys.revoke(services, caller, id, owner=name)
    return to(f"/ui/users/{name}")


def _list(
    request: Request,
    caller: Caller,
    services: Services,
    cursor: str | None = None,
    alert: Alert | None = None,
    form: Form | None = None,
) -> Response:
    page = users.page(services, caller, PAGE, cursor)
    return render(
        request,
        "users.html",
        alert.status if alert else 200,
        users=page.items,
        next=page.next,
        roles=sorted(ROLES),
        alert=alert,
        name=form.get("name") if form else "",
        chosen=form.all("roles") if form else [],
    )


def _one(
    request: Request,
    name: str,
    caller: Caller,
    services: Services,
    issued: KeyOut | None = None,
    alert: Alert | None = None,
) -> Response:
    details = users.describe(services, caller, name)
    return render(
        request,
        "user.html",
        alert.status if alert else 200,
        person=details.user,
        may_query=details.may_query,
        keys=details.keys,
        overall=details.overall,
        roles=sorted(ROLES),
        issued=issued,
        alert=alert,
    )
