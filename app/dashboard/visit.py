"""One request for a page: who sent it, what answers it, and how the answer is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request
from starlette.responses import Response

from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller
from app.http.dependencies import ServicesDep
from app.usecases.services import Services

P = ParamSpec("P")
T = TypeVar("T")

#: Lines of one page of a list.
PAGE = 50


@dataclass(frozen=True)
class Visit:
    """A request whose caller has a session."""

    request: Request
    caller: Caller
    services: Services

    @property
    def is_of_part(self) -> bool:
        """True if a script replaces a part of the page that shows already."""
        return "hx-request" in self.request.headers

    def run(
        self,
        use_case: Callable[Concatenate[Services, Caller, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """The result of a use case for this caller."""
        return use_case(self.services, self.caller, *arguments, **named)

    def render(self, template: str, /, **context: Any) -> Response:
        """The page for this caller; its status is the alert's, where it shows one."""
        return render(self.request, template, **context)

    def render_part(self, template: str, /, **context: Any) -> Response:
        """As ``render``, but a part that is replaced while one types is not a failed page."""
        return render(self.request, template, 200 if self.is_of_part else None, **context)


async def _visit(request: Request, caller: CurrentCaller, services: ServicesDep) -> Visit:
    return Visit(request, caller, services)


#: The visit that a function of a page answers.
CurrentVisit = Annotated[Visit, Depends(_visit)]
