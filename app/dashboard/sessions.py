"""The cookie of a session, and what shows that a form came from a page of that session.

The cookie is for ``/ui`` alone: no route of the API looks at it. Its name begins with ``__Host-``,
which browsers take from this very host over TLS only. A browser that calls this host its own
machine may use plain HTTP, and there alone another name without that protection is used.
"""

from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address

from fastapi import Request
from starlette.responses import Response

from app.contract.errors import CrossSite
from app.http.access import Caller
from app.http.dependencies import services_of
from app.usecases.sessions import caller_of_session

COOKIE = "__Host-privypurse"
LOOPBACK_COOKIE = "privypurse-loopback"


def on_loopback(request: Request) -> bool:
    """Whether this is plain HTTP to a host that the browser calls ``localhost`` or alike.

    What it sends there stays on its machine, in a container's published port or in a tunnel. Who
    claims that name without need endangers their own session only; a proxy in front passes the
    public name on in ``Host``, or forms are refused for their origin.
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
    """The session token that came with the request; empty when there is none."""
    return request.cookies.get(cookie_name(request), "")


async def signed_in(request: Request) -> Caller:
    """The caller whose session it is. Raises: Unauthenticated."""
    token = token_of(request)
    caller = await caller_of_session(services_of(request), token)
    request.state.csrf = csrf_token(token)
    return caller


def remember(response: Response, request: Request, token: str) -> None:
    """Give the browser the session; it ends with the browser, or with its lifetime here."""
    secure = not on_loopback(request)
    response.set_cookie(
        cookie_name(request), token, secure=secure, httponly=True, samesite="strict"
    )


def forget(response: Response, request: Request) -> None:
    secure = not on_loopback(request)
    response.delete_cookie(cookie_name(request), secure=secure, httponly=True, samesite="strict")


def csrf_token(token: str) -> str:
    """What pages of a session put into their forms: it follows from the token, not back."""
    return sha256(b"form of " + token.encode()).hexdigest()


def check_csrf(request: Request, sent: str) -> None:
    """Raises CrossSite unless ``sent`` is what this session's pages put into their forms."""
    if not compare_digest(sent.encode("utf-8", "replace"), request.state.csrf.encode()):
        raise CrossSite


def check_origin(request: Request) -> None:
    """Raises CrossSite unless the browser says that a page of this very address sent the form.

    Plain HTTP is for loopback alone: elsewhere anybody on the way could take the session.
    """
    origin = request.headers.get("origin", "").lower()
    scheme, _, place = origin.partition("://")
    same = bool(place) and place == request.headers.get("host", "").lower()
    if not same or not (scheme == "https" or (scheme == "http" and on_loopback(request))):
        raise CrossSite
