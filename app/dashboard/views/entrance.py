"""The pages for signing in and signing out."""

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
from app.http.declarations import body_limit
from app.http.dependencies import ServicesDep
from app.usecases.sessions import close_session, open_session

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
async def sign_in_page(request: Request, next: Next = "") -> Response:
    """The form in which a user enters a key to open a session."""
    return render(request, "sign_in.html", next=next, refused=False)


@pages.post(SIGN_IN, dependencies=[anyone, body_limit(FORM_BYTES)])
async def sign_in(request: Request, form: SentForm, services: ServicesDep) -> Response:
    """Open a session with a key; a refusal does not say why the key is not valid."""
    key, next = form.get("key"), form.get("next")
    token = await run_in_threadpool(open_session, services, key)
    if token is None:
        # HTTP requires a reply 401 to name an authentication header. This form carries the key in
        # its body, so the reply is 422.
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
    """Whether the path is a page of this dashboard; no browser can read it as another site."""
    inside = path == "/ui" or path.startswith("/ui/")
    return inside and path.isprintable() and path.isascii() and "\\" not in path
