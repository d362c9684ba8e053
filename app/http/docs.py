"""The interactive documentation, from files of this package, so that it needs no internet.

Its page has the content security policy of all pages: no inline script, nothing from another
origin. ``static/swagger`` has a copy of Swagger UI with its licence.
"""

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from app.http.access import anyone
from app.http.once import written_once
from app.http.route import router

STATIC = Path(__file__).parent / "static"

pages = router(include_in_schema=False)


@pages.get("/openapi.json", dependencies=[anyone])
async def openapi_document(request: Request) -> Response:
    """The OpenAPI document. Anyone may read it, so it is written once and not for each request."""
    app = request.app
    return written_once(
        request, "openapi_document", lambda: bytes(JSONResponse(app.openapi()).body)
    )


@pages.get("/docs", dependencies=[anyone], response_class=HTMLResponse)
async def interactive() -> FileResponse:
    """The page that loads Swagger UI."""
    return FileResponse(STATIC / "docs.html", media_type="text/html")


@pages.get("/", dependencies=[anyone], response_class=RedirectResponse)
async def front_door() -> RedirectResponse:
    """Redirect from the bare address of the service to the interactive documentation."""
    return RedirectResponse("/docs")


def mount(app: FastAPI) -> None:
    """Serve the documentation's page and files."""
    app.router.routes.extend(pages.routes)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
