"""One's own keys: what they are, one more, one less."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import render
from app.http.access import CurrentUser, any_key
from app.http.dependencies import ServicesDep
from app.routes.users import KeyOut, issue_key, list_keys, revoke_key
from app.usecases.services import Services
from storage.people.users import User

pages = pages_router()


@pages.get("/ui/keys", dependencies=[any_key])
def own_keys(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """The keys of whoever is signed in."""
    return _page(request, user, services, None)


@pages.post("/ui/keys", dependencies=[any_key])
def one_more(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """Issue a key; it is on this one page and nowhere else."""
    return _page(request, user, services, issue_key(user.name, user, services))


@pages.post("/ui/keys/{id}/revoke", dependencies=[any_key])
def revoke(id: str, user: CurrentUser, services: ServicesDep) -> Response:
    """Revoke a key; with the one that opened this session the session ends."""
    revoke_key(id, user, services)
    return to("/ui/keys")


def _page(request: Request, user: User, services: Services, issued: KeyOut | None) -> Response:
    return render(
        request,
        "keys.html",
        keys=list_keys(user.name, user, services).items,
        issued=issued,
        current=request.state.key_id,
    )
