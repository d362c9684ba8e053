"""The public catalogue: the queries that this service answers, and the limits of the service."""

from fastapi import Request
from starlette.responses import Response

from app.contract.catalogue import Catalogue
from app.http.access import any_key
from app.http.dependencies import ServicesDep
from app.http.once import written_once
from app.http.route import router
from app.usecases import catalogue

api = router(prefix="/v1", tags=["catalogue"])


@api.get("/catalogue", dependencies=[any_key], response_model=Catalogue)
async def show_catalogue(request: Request, services: ServicesDep) -> Response:
    """List all query kinds with parameters, defaults, neighbouring relations and sources."""
    return written_once(
        request, "catalogue", lambda: catalogue.catalogue(services).model_dump_json().encode()
    )
