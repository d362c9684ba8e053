"""The admin's pages of users: their roles, limits and keys."""

from pydantic import TypeAdapter
from starlette.responses import Response

from app.contract.people import KeyOut, UserChange, UserIn
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, NameOrNone, SentForm, read, sent_limit
from app.dashboard.pages import pages, to
from app.dashboard.visit import PAGE, CurrentVisit, Visit
from app.http.access import ROLES, allow
from app.http.dependencies import PageCursor
from app.usecases.people import keys, users
from storage.errors import NotFound

NEW: TypeAdapter[UserIn] = TypeAdapter(UserIn)
CHANGE: TypeAdapter[UserChange] = TypeAdapter(UserChange)


@pages.get("/ui/users", dependencies=[allow("admin")])
def users_page(visit: CurrentVisit, cursor: PageCursor = None, q: NameOrNone = "") -> Response:
    """The users, newest first, or those whose names contain a text."""
    return _list(visit, Form({}), cursor, search=q)


@pages.post("/ui/users", dependencies=[allow("admin")])
def create(visit: CurrentVisit, form: SentForm) -> Response:
    """Create a user; only this page shows the first key, and only once."""
    try:
        body = read(NEW, {"name": form.get("name"), "roles": form.all("roles")})
        user = visit.run(users.create, body)
    except Exception as error:
        return _list(visit, form, alert=alert_of(error))
    return _one(visit, user.name, issued=user)


@pages.get("/ui/users/{name}", dependencies=[allow("admin")])
def one_user(visit: CurrentVisit, name: str) -> Response:
    """One user: roles, state, limit and keys."""
    return _one(visit, name)


@pages.post("/ui/users/{name}", dependencies=[allow("admin")])
def change(visit: CurrentVisit, name: str, form: SentForm) -> Response:
    """Change a user's roles, disable or enable the user, or set the limit over all datasets."""
    try:
        what = form.get("do")
        if what == "budget":
            visit.run(users.set_overall_budget, name, sent_limit(form))
        else:
            roles = {"roles": form.all("roles")}
            body = roles if what == "roles" else {"disabled": what == "disable"}
            visit.run(users.change, name, read(CHANGE, body))
    except NotFound:
        raise
    except Exception as error:
        return _one(visit, name, alert=alert_of(error))
    return to(f"/ui/users/{name}")


@pages.post("/ui/users/{name}/keys", dependencies=[allow("admin")])
def issue_key(visit: CurrentVisit, name: str) -> Response:
    """Issue a key to a user; only this page shows it, and only once."""
    return _one(visit, name, issued=visit.run(keys.issue, name))


@pages.post("/ui/users/{name}/keys/{id}/revoke", dependencies=[allow("admin")])
def revoke_key(visit: CurrentVisit, name: str, id: str) -> Response:
    """Revoke one key of a user."""
    visit.run(keys.revoke, id, owner=name)
    return to(f"/ui/users/{name}")


def _list(
    visit: Visit,
    form: Form,
    cursor: str | None = None,
    alert: Alert | None = None,
    search: str = "",
) -> Response:
    page = visit.run(users.page, PAGE, cursor, search)
    return visit.render(
        "users.html",
        users=page.items,
        next=page.next,
        search=search,
        roles=sorted(ROLES),
        alert=alert,
        name=form.get("name"),
        chosen=form.all("roles"),
    )


def _one(
    visit: Visit, name: str, issued: KeyOut | None = None, alert: Alert | None = None
) -> Response:
    details = visit.run(users.describe, name)
    return visit.render(
        "user.html",
        person=details.user,
        may_query=details.may_query,
        keys=details.keys,
        overall=details.overall,
        roles=sorted(ROLES),
        issued=issued,
        alert=alert,
    )
