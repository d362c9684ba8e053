"""Parameters of route functions: the services, and those of lists."""

from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import StringConstraints

from app.contract.models import NAME_PATTERN
from app.usecases.services import Services


def services_of(request: Request) -> Services:
    """The services that this application was started with."""
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    return services_of(request)


ServicesDep = Annotated[Services, Depends(_services)]

#: ``?limit=``: how many items of a list come at once.
PageLimit = Annotated[int, Query(ge=1, le=1000, description="Items at once.")]
#: ``?cursor=``: the ``next`` of the page before.
PageCursor = Annotated[
    str | None, Query(max_length=512, description="`next` of the page before, as it came.")
]
DEFAULT_LIMIT = 50
#: ``?dataset=``: a name, and nothing that a database might refuse to compare.
DatasetFilter = Annotated[
    Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None,
    Query(description="Only this dataset."),
]
