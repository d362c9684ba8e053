"""Liveness, readiness, versions and metrics of the service."""

from fastapi import Request
from starlette.responses import JSONResponse, Response

from app.contract.errors import WarmingUp
from app.contract.health import Health, Readiness, Version
from app.contract.problems import problems
from app.http.access import anyone
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import health
from storage.errors import NotFound

api = router(tags=["health"])


@api.get("/healthz", dependencies=[anyone])
async def process_is_up() -> Health:
    """Check that the process answers requests."""
    return Health()


@api.get(
    "/readyz",
    dependencies=[anyone],
    response_model=Readiness,
    responses={
        503: {
            "model": Readiness,
            "description": "The database, the data folder or the store of records is not usable, "
            "no published heads of the ledger are found, or the service is warming up.",
        }
    },
)
async def service_can_work(services: ServicesDep) -> Response:
    """Check that database, data folder and store are usable, and published heads are found."""
    state = await health.probed(services)
    if state.status == "ready":
        return JSONResponse(state.model_dump())
    wait = {"Retry-After": str(WarmingUp.retry_after)}
    return JSONResponse(state.model_dump(), status_code=503, headers=wait)


@api.get("/version", dependencies=[anyone])
async def versions() -> Version:
    """Show the versions of the service, of its API and of Python."""
    return health.version()


class _Exposition(Response):
    media_type = health.EXPOSITION_MEDIA_TYPE


@api.get(
    "/metrics",
    dependencies=[anyone],
    response_class=_Exposition,
    responses=problems(NotFound),
)
def exposition(request: Request, services: ServicesDep) -> Response:
    """Show Prometheus metrics to the operator's token (`PURSE_METRICS_TOKEN`); else 404."""
    # This route runs in a thread, because the metrics of several processes are read from files and
    # merged.
    return _Exposition(health.exposition(services, request.headers.get("authorization", "")))
