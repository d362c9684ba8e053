"""The pages for signing in and signing out."""

from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.errors import Unauthenticated
from app.dashboard.forms import SentForm
from app.dashboard.navigation import links_for
from app.dashboard.pages import SIGN_IN, pages, to
from app.dashboard.sessions import (
    departure_of,
    forget,
    forget_departure,
    remember,
    remember_departure,
    token_of,
)
from app.dashboard.templating import render
from app.http.access import CurrentCaller, any_key, anyone
from app.http.connections import client_of
from app.http.declarations import body_limit
from app.http.dependencies import ServicesDep
from app.usecases.people import sign_in as provider_sign_in
from app.usecases.people.sessions import close_session, open_session
from app.usecases.services import Services

#: The most bytes of the sign-in form. Anybody may send this form, so longer ones could fill the
#: memory.
FORM_BYTES = 16 * 1024

Next = Annotated[str, Query(max_length=2000)]


@pages.get("/ui", dependencies=[any_key])
async def front(caller: CurrentCaller) -> Response:
    """Redirect each user to the first page that their roles may open."""
    return to(links_for(caller)[0].path)


@pages.get("/ui/", dependencies=[anyone])
async def front_with_a_slash() -> Response:
    """Redirect ``/ui/`` to ``/ui``, as many people type the slash."""
    return to("/ui")


@pages.get(SIGN_IN, dependencies=[anyone])
async def sign_in_page(request: Request, services: ServicesDep, next: Next = "") -> Response:
    """The form in which a user enters a key to open a session, and the link to the provider."""
    return _sign_in_page(request, services, next)


@pages.post(SIGN_IN, dependencies=[anyone, body_limit(FORM_BYTES)])
async def sign_in(request: Request, form: SentForm, services: ServicesDep) -> Response:
    """Open a session with a key; a refusal does not say why the key is not valid."""
    key, next = form.get("key"), form.get("next")
    token = await run_in_threadpool(open_session, services, key)
    if token is None:
        # HTTP requires a 401 reply to contain the header WWW-Authenticate. This form has the key in
        # its body and not in a header, so the reply is 422.
        return _sign_in_page(request, services, next, refused="key")
    response = to(next if _is_own(next) else "/ui")
    remember(response, request, token)
    return response


@pages.get(f"{SIGN_IN}/provider", dependencies=[anyone])
async def depart(request: Request, services: ServicesDep, next: Next = "") -> Response:
    """Send the browser to the OpenID provider."""
    departure = await provider_sign_in.begin(services)
    response = to(departure.address)
    remember_departure(response, request, departure.secret, next)
    return response


@pages.get(f"{SIGN_IN}/return", dependencies=[anyone])
async def come_back(request: Request, services: ServicesDep) -> Response:
    """Open a session for a browser that the provider sends back; each departure counts once."""
    secret, next = departure_of(request)
    sent = request.query_params.multi_items()
    # If a parameter is repeated, the provider and this service could read different values of it.
    # So all parameters are dropped, and the sign-in is refused.
    returned = dict(sent) if len(dict(sent)) == len(sent) else {}
    try:
        host = request.client.host if request.client else ""
        address = client_of(host, services.settings.proxies)
        token = await provider_sign_in.finish(services, secret, returned, address)
    except Unauthenticated:
        response = _sign_in_page(request, services, next, refused="provider")
    else:
        # The browser comes from another site. After a redirection it would withhold the session
        # cookie, which is SameSite=Strict. So it gets a page of this site, from which it sends the
        # cookie.
        response = render(request, "signed_in.html", next=next if _is_own(next) else "/ui")
        remember(response, request, token)
    forget_departure(response, request)
    return response


@pages.get(f"{SIGN_IN}/leave", dependencies=[anyone])
async def leave(services: ServicesDep) -> Response:
    """Send the browser to the page on which it ends the session with the provider."""
    return to(await provider_sign_in.leaving(services) or SIGN_IN)


@pages.post("/ui/sign-out", dependencies=[any_key])
async def sign_out(request: Request, services: ServicesDep) -> Response:
    """End this session immediately."""
    await run_in_threadpool(close_session, services, token_of(request))
    response = to(SIGN_IN)
    forget(response, request)
    return response


def _sign_in_page(request: Request, services: Services, next: str, refused: str = "") -> Response:
    """The page on which to sign in.

    ``refused``: ``key`` or ``provider`` after an attempt to sign in with it failed, else empty.
    """
    return render(
        request,
        "sign_in.html",
        422 if refused else None,
        next=next,
        refused=refused,
        offered=provider_sign_in.is_offered(services),
    )


def _is_own(path: str) -> bool:
    """Whether the path is a page of this dashboard; no browser can read it as another site."""
    inside = path == "/ui" or path.startswith("/ui/")
    return inside and path.isprintable() and path.isascii() and "\\" not in path
