"""The public catalogue: the queries that this service answers, and the limits of the service."""

from app.contract.catalogue import Catalogue
from app.http.access import any_key
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import catalogue

api = router(prefix="/v1", tags=["catalogue"])


@api.get("/catalogue", dependencies=[any_key])
def show_catalogue(services: ServicesDep) -> Catalogue:
    """List all query kinds with parameters, defaults, neighbouring relations and sources."""
    return catalogue.catalogue(services)
