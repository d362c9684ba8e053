"""Certificates: signed statements of what the service claims, and the keys that verify them."""

from typing import Any
from uuid import UUID

from starlette.responses import Response

from app.contract.errors import Busy
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow, any_key
from app.http.declarations import sends
from app.http.dependencies import ServicesDep
from app.http.files import JOSE, jose_file
from app.http.route import router
from app.usecases import certificates
from storage.errors import NotFound, StillRunning

api = router(prefix="/v1", tags=["certificates"])

SIGNED: dict[int | str, dict[str, Any]] = {
    200: {"description": "A compact JWS", "content": {JOSE: {"schema": {"type": "string"}}}}
}


@api.get("/certificate-keys", dependencies=[any_key])
def show_certificate_keys(services: ServicesDep) -> dict[str, list[dict[str, str]]]:
    """Show the public keys of all certificates, as a set of JSON Web Keys (RFC 7517)."""
    return certificates.keys(services)


@api.get(
    "/queries/{query_id}/certificate",
    dependencies=[allow("analyst"), sends(JOSE)],
    response_class=Response,
    responses={**SIGNED, **problems(NotFound, StillRunning)},
)
async def certify_answer(query_id: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Download the certificate of an own answer: what the service claims about it, signed."""
    signed = await certificates.of_answer(services, caller, query_id)
    return jose_file(signed, str(UUID(query_id)))


@api.get(
    "/datasets/{name}/certificate",
    dependencies=[allow("owner", "auditor"), sends(JOSE)],
    response_class=Response,
    responses={**SIGNED, **problems(NotFound, Busy)},
)
def certify_dataset(name: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Download the certificate of a dataset; it binds answers by digests and shows no value."""
    return jose_file(certificates.of_dataset(services, caller, name), name)
