"""The route class of pages: a session identifies the caller, and refusals become error pages.

A page that changes state accepts a form only from a page of the same session. The request's
Origin header is checked first, and the CSRF token in the form before the form takes effect.
"""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

import structlog
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from app.contract.errors import Unauthenticated
from app.dashboard.alerts import alert_of, internal
from app.dashboard.forms import URLENCODED, Form
from app.dashboard.sessions import check_csrf, check_origin, signed_in
from app.dashboard.templating import HEADERS, render
from app.http.access import Caller
from app.http.files import jose_file
from app.http.route import Route

SIGN_IN = "/ui/sign-in"

log = structlog.get_logger("privypurse.dashboard")


class Page(Route):
    """A route for callers with a session. A route that declares no access rule fails at start."""

    async def caller(self, request: Request) -> Caller:
        if request.method == "POST":
            check_origin(request)
        return await signed_in(request)

    async def received(self, request: Request) -> Request:
        if request.method != "POST":
            return request
        if self.access.public:
            check_origin(request)
        request.state.form = Form.parse(await self.read(request, URLENCODED))
        if not self.access.public:
            check_csrf(request, request.state.form.get("csrf"))
        return request

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def with_error_pages(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientDisconnect:
                raise
            except Unauthenticated:
                return to_sign_in(request)
            except Exception as error:
                return error_page(request, error)

        return with_error_pages


class UploadPage(Page):
    """A page for uploads: its function reads the form as a stream."""

    async def received(self, request: Request) -> Request:
        """Return the request with its body unread, for the function of the page to read."""
        return request


#: The routes of the dashboard. For ``pages`` a submitted form is parsed first. For ``uploads`` the
#: page itself reads the form as a stream, because it contains a file.
pages = APIRouter(route_class=Page, include_in_schema=False)
uploads = APIRouter(route_class=UploadPage, include_in_schema=False)


def to(path: str) -> Response:
    """Redirect the browser (303), so that reloading the next page does not send the form again."""
    return RedirectResponse(path, 303, HEADERS)


def signed_file(certificate: str, name: str) -> Response:
    """A certificate as a file for download."""
    response = jose_file(certificate, name)
    response.headers.update(HEADERS)
    return response


def to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, which leads back to the requested page."""
    if "hx-request" in request.headers:
        # htmx asks for a part of a page and would insert the sign-in page there. This header makes
        # it load the whole page anew.
        return Response(status_code=401, headers={**HEADERS, "HX-Redirect": SIGN_IN})
    if request.method != "GET" or request.url.path == "/ui":
        return to(SIGN_IN)
    query = f"?{request.url.query}" if request.url.query else ""
    return to(f"{SIGN_IN}?next={quote(request.url.path + query, safe='')}")


def error_page(request: Request, error: Exception) -> Response:
    """The page for an error. Of an unexpected error, the log receives only the class name."""
    try:
        alert = alert_of(error)
    except Exception:  # ``alert_of`` raises every error that it does not know.
        failure = type(error).__qualname__
        log.error("failed", request_id=request.state.request_id, error=failure)
        alert = internal()
    return render(request, "error.html", alert=alert, request_id=request.state.request_id)
