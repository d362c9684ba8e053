"""The way in and the way out."""

from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.dashboard.forms import SentForm
from app.dashboard.navigation import links_for
from app.dashboard.pages import SIGN_IN, pages, to
from app.dashboard.sessions import forget, remember, token_of
from app.dashboard.templating import render
from app.http.access import CurrentCaller, any_key, anyone
from app.http.dependencies import ServicesDep
from app.usecases.sessions import close_session, open_session

Next = Annotated[str, Query(max_length=2000)]


@pages.get("/ui", dependencies=[any_key])
async def front(caller: CurrentCaller) -> Response:
    """Everybody starts at the first page of their roles."""
    return to(links_for(caller)[0].path)


@pages.get("/ui/", dependencies=[anyone])
async def front_with_a_slash() -> Response:
    """The same, as many type it."""
    return to("/ui")


@pages.get(SIGN_IN, dependencies=[anyone])
async def sign_in_page(request: Request, next: Next = "") -> Response:
    """Where a key is exchanged for a session."""
    return render(request, "sign_in.html", next=next, refused=False)


@pages.post(SIGN_IN, dependencies=[anyone])
async def sign_in(request: Request, form: SentForm, services: ServicesDep) -> Response:
    """Open a session with a key; a refusal does not say why the key is not valid."""
    key, next = form.get("key"), form.get("next")
    token = await run_in_threadpool(open_session, services, key)
    if token is None:
        # Not 401: that has to name a header for the key, and here it comes by the form.
        return render(request, "sign_in.html", 422, next=next, refused=True)
    response = to(next if _is_own(next) else "/ui")
    remember(response, request, token)
    return response


@pages.post("/ui/sign-out", dependencies=[any_key])
async def sign_out(request: Request, services: ServicesDep) -> Response:
    """End this session immediately."""
    await run_in_threadpool(close_session, services, token_of(request))
    response = to(SIGN_IN)
    forget(response, request)
    return response


def _is_own(path: str) -> bool:
    """Whether it is a page of this dashboard, and nothing that a browser reads as another site."""
    inside = path == "/ui" or path.startswith("/ui/")
    return inside and path.isprintable() and path.isascii() and "\\" not in path
