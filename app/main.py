"""The application: middleware, routes, documentation. ``uvicorn app.main:app`` serves it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from app import __version__
from app.config.settings import Settings
from app.dashboard import serving
from app.http import docs, handlers, openapi
from app.http.fast_lane import PATH
from app.mcp.route import api as agents
from app.routes import ROUTERS
from app.service.priority import let_work_go_first
from app.service.startup import opened
from app.telemetry import logs
from app.telemetry.metrics import Metrics
from app.usecases.services import Services

Opener = Callable[[Settings, Metrics], AbstractContextManager[Services]]


def create_app(settings: Settings, opener: Opener = opened, *, fast_lane: bool = True) -> FastAPI:
    """The application, which opens its services at its start and closes them at its end.

    ``opener`` makes the services; tests of the HTTP layer pass their own. Without ``fast_lane``,
    queries pass through the same middleware and routing as all other requests.
    """
    metrics = Metrics(several=settings.processes > 1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = opener(settings, metrics)
        services = await run_in_threadpool(opening.__enter__)
        let_work_go_first()
        app.state.services = services
        services.uploads.start()
        try:
            yield
        finally:
            await services.uploads.close()
            await services.answering.close()
            await run_in_threadpool(opening.__exit__, None, None, None)

    logs.configure()
    app = FastAPI(
        title="PrivyPurse",
        version=__version__,
        summary="Private queries over graphs and tables, under a ledger that never overspends.",
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # The application gets the route objects themselves. ``include_router`` would copy them for
        # each application, which takes ten times as long as the rest of this function.
        routes=[route for router in (*ROUTERS, agents) for route in router.routes],
        # FastAPI's own telemetry is turned off; that of ``app.telemetry`` takes its place. Danger:
        # environment variables could otherwise enable FastAPI's traces, which contain the texts of
        # exceptions and the bodies of requests.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    handlers.install(app, metrics, openapi.route_of(app, "POST", PATH) if fast_lane else None)
    docs.mount(app)
    serving.mount(app)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    return app


def __getattr__(name: str) -> FastAPI:
    """Makes ``app.main:app`` from the environment when a server imports it."""
    if name == "app":
        return create_app(Settings())
    raise AttributeError(name)
