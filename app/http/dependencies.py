"""Parameters that route functions share: the services, and the parameters of lists."""

from typing import Annotated

from fastapi import Depends, Query, Request

from app.contract.models import Name
from app.usecases.services import Services


def services_of(request: Request) -> Services:
    """The services with which the application of this request was started."""
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    return services_of(request)


ServicesDep = Annotated[Services, Depends(_services)]

#: ``?limit=``: the most items of one page of a list.
PageLimit = Annotated[int, Query(ge=1, le=1000, description="Items at once.")]
#: ``?cursor=``: the member ``next`` of the previous page. Without it, the list begins with its
#: first page.
PageCursor = Annotated[
    str | None, Query(max_length=512, description="`next` of the page before, as it came.")
]
DEFAULT_LIMIT = 50
#: ``?dataset=``: a name. The pattern excludes characters that a database might refuse to compare.
DatasetFilter = Annotated[Name | None, Query(description="Only this dataset.")]
