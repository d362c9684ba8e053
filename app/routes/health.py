"""Is it up, can it work, what is it, and what an operator may count."""

from __future__ import annotations

import hmac
import platform
from typing import Literal

from fastapi import Request
from starlette.responses import JSONResponse, Response

from app import __version__
from app.contract.models import Reply
from app.contract.problems import problems
from app.http.access import anyone
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.telemetry import metrics
from storage.errors import NotFound

api = router(tags=["health"])


class Health(Reply):
    status: Literal["ok"] = "ok"


class Readiness(Reply):
    status: Literal["ready", "not_ready"]


class Version(Reply):
    """Versions of the service and of its contract."""

    version: str
    api: str
    python: str


@api.get("/healthz", dependencies=[anyone])
async def process_is_up() -> Health:
    """The process answers."""
    return Health()


@api.get(
    "/readyz",
    dependencies=[anyone],
    response_model=Readiness,
    responses={
        503: {
            "model": Readiness,
            "description": "The database, the data folder or the store of records is not usable.",
        }
    },
)
def service_can_work(services: ServicesDep) -> Response:
    """The database, its migrations, the data folder and a store of records are usable."""
    ready = services.database.ready() and services.files.usable()
    state = Readiness(status="ready" if ready else "not_ready")
    return JSONResponse(state.model_dump(), status_code=200 if ready else 503)


@api.get("/version", dependencies=[anyone])
async def versions() -> Version:
    """What is running."""
    return Version(version=__version__, api="v1", python=platform.python_version())


class _Exposition(Response):
    media_type = metrics.MEDIA_TYPE


@api.get(
    "/metrics",
    dependencies=[anyone],
    response_class=_Exposition,
    responses=problems(NotFound),
)
async def exposition(request: Request, services: ServicesDep) -> Response:
    """Prometheus metrics, for the operator's token (`PURSE_METRICS_TOKEN`); without one, 404."""
    expected = services.settings.metrics_token
    sent = request.headers.get("authorization", "")
    if expected is None:
        raise NotFound
    wanted = f"Bearer {expected.get_secret_value()}"
    # The same 404 for a wrong token: the route is the operator's, and nobody else needs to know.
    if not hmac.compare_digest(sent.encode("utf-8", "replace"), wanted.encode()):
        raise NotFound
    return _Exposition(services.metrics.exposition())
