"""What may be asked of this service, and the limits it works within; all of it public."""

from app.contract.catalogue import Catalogue
from app.http.access import any_key
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import catalogue

api = router(prefix="/v1", tags=["catalogue"])


@api.get("/catalogue", dependencies=[any_key])
def show_catalogue(services: ServicesDep) -> Catalogue:
    """Everything an analyst may ask for: parameters, defaults, relations, sources."""
    return catalogue.catalogue(services)
