"""The admin's pages: people, their roles, limits and keys."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, read
from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import render
from app.http.access import ROLES, CurrentUser, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.routes.budgets import Standing
from app.routes.users import (
    KeyOut,
    UserChange,
    UserIn,
    UserOut,
    change_user,
    create_user,
    issue_key,
    list_keys,
    list_users,
    revoke_key,
    set_overall_budget,
)
from app.usecases.services import Services
from storage.errors import NotFound
from storage.people.users import User

pages = pages_router()

PAGE = 50
NEW: TypeAdapter[UserIn] = TypeAdapter(UserIn)
CHANGE: TypeAdapter[UserChange] = TypeAdapter(UserChange)
LIMIT: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)


@pages.get("/ui/users", dependencies=[allow("admin")])
def users(request: Request, services: ServicesDep, cursor: PageCursor = None) -> Response:
    """Everybody, newest first."""
    return _list(request, services, cursor=cursor)


@pages.post("/ui/users", dependencies=[allow("admin")])
def one_more(
    request: Request, admin: CurrentUser, services: ServicesDep, form: SentForm
) -> Response:
    """Make a user; the first key is on this one page and nowhere else."""
    try:
        wanted = read(NEW, {"name": form.get("name"), "roles": form.all("roles")})
        made = create_user(wanted, admin, services)
    except Exception as error:
        return _list(request, services, alert=alert_of(error), form=form)
    return _one(request, made.name, admin, services, issued=made)


@pages.get("/ui/users/{name}", dependencies=[allow("admin")])
def one_user(request: Request, name: str, admin: CurrentUser, services: ServicesDep) -> Response:
    """One user: roles, state, limit and keys."""
    return _one(request, name, admin, services)


@pages.post("/ui/users/{name}", dependencies=[allow("admin")])
def change(
    request: Request, name: str, admin: CurrentUser, services: ServicesDep, form: SentForm
) -> Response:
    """Change roles, disable, enable, or set the limit over all datasets together."""
    try:
        what = form.get("do")
        if what == "budget":
            amounts = {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"}
            set_overall_budget(name, read(LIMIT, amounts), admin, services)
        else:
            body: dict[str, Any] = {"disabled": what == "disable"}
            if what == "roles":
                body = {"roles": form.all("roles")}
            change_user(name, read(CHANGE, body), admin, services)
    except NotFound:
        raise
    except Exception as error:
        return _one(request, name, admin, services, alert=alert_of(error))
    return to(f"/ui/users/{name}")


@pages.post("/ui/users/{name}/keys", dependencies=[allow("admin")])
def one_more_key(
    request: Request, name: str, admin: CurrentUser, services: ServicesDep
) -> Response:
    """Issue a key for somebody; it is on this one page and nowhere else."""
    return _one(request, name, admin, services, issued=issue_key(name, admin, services))


@pages.post("/ui/users/{name}/keys/{id}/revoke", dependencies=[allow("admin")])
def revoke(name: str, id: str, admin: CurrentUser, services: ServicesDep) -> Response:
    """Revoke a key of somebody."""
    if services.users.owner_of_key(id) != name:
        raise NotFound
    revoke_key(id, admin, services)
    return to(f"/ui/users/{name}")


def _list(
    request: Request,
    services: Services,
    cursor: str | None = None,
    alert: Alert | None = None,
    form: Form | None = None,
) -> Response:
    page = list_users(services, PAGE, cursor)
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
    admin: User,
    services: Services,
    issued: KeyOut | None = None,
    alert: Alert | None = None,
) -> Response:
    found = services.users.find(name)
    if found is None:
        raise NotFound
    total = services.ledger.overall(found.id)
    return render(
        request,
        "user.html",
        alert.status if alert else 200,
        shown=UserOut.of(found),
        keys=list_keys(name, admin, services).items,
        overall=None if total is None else Standing.of_account(total.account),
        roles=sorted(ROLES),
        issued=issued,
        alert=alert,
    )
