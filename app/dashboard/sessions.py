"""The session cookie, and the checks that a form came from a page of the same session.

Only pages below ``/ui`` read the cookie; no route of the API does. Its name begins with
``__Host-``: browsers accept such a cookie only over TLS and only from this very host. Plain HTTP is
possible to loopback addresses only; the cookie then has another name, without that protection.
"""

from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import quote, unquote

from fastapi import Request
from starlette.responses import Response

from app.contract.errors import CrossSite
from app.http.access import Caller
from app.http.dependencies import services_of
from app.usecases.people.sessions import caller_of_session

COOKIE = "__Host-privypurse"
LOOPBACK_COOKIE = "privypurse-loopback"
#: The suffix of the name of the cookie that a browser has while its user signs in at the OpenID
#: provider.
DEPARTURE = "-departure"


def on_loopback(request: Request) -> bool:
    """Whether the request is plain HTTP to ``localhost`` or a loopback address.

    Its traffic stays on the browser's machine, in a container's published port or in a tunnel. A
    client that forges this name endangers its own session only. A proxy must pass the public name
    on in ``Host``; otherwise the origin check refuses all forms.
    """
    name = request.url.hostname or ""
    if request.url.scheme != "http" or name == "localhost":
        return request.url.scheme == "http"
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def cookie_name(request: Request) -> str:
    return LOOPBACK_COOKIE if on_loopback(request) else COOKIE


def token_of(request: Request) -> str:
    """The session token in the cookie of the request; empty if there is none."""
    return request.cookies.get(cookie_name(request), "")


async def signed_in(request: Request) -> Caller:
    """The caller whose session the cookie names. Raises: Unauthenticated."""
    token = token_of(request)
    caller = await caller_of_session(services_of(request), token)
    request.state.csrf = csrf_token(token)
    return caller


def remember(response: Response, request: Request, token: str) -> None:
    """Set the session cookie. It ends with the browser, or with the session in the service."""
    secure = not on_loopback(request)
    response.set_cookie(
        cookie_name(request), token, secure=secure, httponly=True, samesite="strict"
    )


def forget(response: Response, request: Request) -> None:
    secure = not on_loopback(request)
    response.delete_cookie(cookie_name(request), secure=secure, httponly=True, samesite="strict")


def remember_departure(response: Response, request: Request, secret: str, next: str) -> None:
    """Set the cookie with which a browser comes back from the provider, within ten minutes.

    The provider sends the browser back from another site, so ``samesite`` must be ``lax``.
    """
    response.set_cookie(
        cookie_name(request) + DEPARTURE,
        f"{secret}.{quote(next, safe='')}",
        max_age=600,
        secure=not on_loopback(request),
        httponly=True,
        samesite="lax",
    )


def departure_of(request: Request) -> tuple[str, str]:
    """The secret and the next page in the cookie of the departure; empty without it."""
    secret, _, next = request.cookies.get(cookie_name(request) + DEPARTURE, "").partition(".")
    return secret, unquote(next)


def forget_departure(response: Response, request: Request) -> None:
    response.delete_cookie(
        cookie_name(request) + DEPARTURE,
        secure=not on_loopback(request),
        httponly=True,
        samesite="lax",
    )


def csrf_token(token: str) -> str:
    """The CSRF token in the forms of a session: a hash that does not reveal the session token."""
    return sha256(b"form of " + token.encode()).hexdigest()


def check_csrf(request: Request, sent: str) -> None:
    """Raises: CrossSite unless ``sent`` is the CSRF token of this session."""
    if not compare_digest(sent.encode("utf-8", "replace"), request.state.csrf.encode()):
        raise CrossSite


def check_origin(request: Request) -> None:
    """Raises: CrossSite unless the Origin header names the address of this service.

    Plain HTTP is accepted on loopback only: elsewhere the network could steal the session.
    """
    origin = request.headers.get("origin", "").lower()
    scheme, _, place = origin.partition("://")
    same = bool(place) and place == request.headers.get("host", "").lower()
    if not same or not (scheme == "https" or (scheme == "http" and on_loopback(request))):
        raise CrossSite
