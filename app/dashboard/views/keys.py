"""One's own keys: what they are, one more, one less."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from app.contract.people import KeyOut
from app.dashboard.pages import pages as pages_router
from app.dashboard.pages import to
from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller, any_key
from app.http.dependencies import ServicesDep
from app.usecases import keys
from app.usecases.services import Services

pages = pages_router()


@pages.get("/ui/keys", dependencies=[any_key])
def own_keys(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """The caller's own keys."""
    return _page(request, caller, services, None)


@pages.post("/ui/keys", dependencies=[any_key])
def one_more(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Issue a key; it is on this one page and nowhere else."""
    return _page(request, caller, services, keys.issue(services, caller, caller.name))


@pages.post("/ui/keys/{id}/revoke", dependencies=[any_key])
def revoke(id: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Revoke a key; with the one that opened this session the session ends."""
    keys.revoke(services, caller, id)
    return to("/ui/keys")


def _page(request: Request, caller: Caller, services: Services, issued: KeyOut | None) -> Response:
    return render(
        request,
        "keys.html",
        keys=keys.page(services, caller, caller.name).items,
        issued=issued,
        current=caller.key_id,
    )
