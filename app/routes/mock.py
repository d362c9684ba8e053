"""Made-up records, for code that is written before any budget is spent."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from app.contract.errors import InvalidRequest
from app.contract.problems import problems
from app.contract.record_forms import MADE_UP, MadeUpFormat
from app.http.access import CurrentCaller, allow
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import mock
from storage.errors import NoRecords, NotFound

api = router(prefix="/v1", tags=["datasets"])

Rows = Annotated[int, Query(ge=1, le=100_000, description="The most records to make up.")]


@api.get(
    "/datasets/{name}/mock",
    dependencies=[allow("owner", "analyst", "auditor")],
    response_class=Response,
    responses={
        200: {
            "description": "A file that an upload would accept.",
            "content": {kind: {"schema": {"type": "string"}} for kind in MADE_UP.values()},
        },
        **problems(NotFound, NoRecords, InvalidRequest),
    },
)
def mock_records(
    name: str,
    caller: CurrentCaller,
    services: ServicesDep,
    rows: Rows = 100,
    format: Annotated[MadeUpFormat, Query()] = "csv",
) -> Response:
    """Make up records from the public description alone; the records have no part in them."""
    file = mock.mock(services, caller, name, rows, format)
    headers = {"Content-Disposition": f'attachment; filename="{name}-mock.{format}"'}
    return Response(file, media_type=MADE_UP[format], headers=headers)
