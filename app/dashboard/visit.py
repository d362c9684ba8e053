"""One request for a page, with its caller, the services, and the rendering of the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request
from starlette.responses import Response

from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller
from app.http.dependencies import ServicesDep
from app.usecases import notices
from app.usecases.services import Services

P = ParamSpec("P")
T = TypeVar("T")

#: The number of lines on one page of a list.
PAGE = 50


@dataclass(frozen=True)
class Visit:
    """A request whose caller has a session."""

    request: Request
    caller: Caller
    services: Services

    @property
    def is_of_part(self) -> bool:
        """True if a script in the browser requests only a part of a page."""
        return "hx-request" in self.request.headers

    def run(
        self,
        use_case: Callable[Concatenate[Services, Caller, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Call a use case as this caller and return its result."""
        return use_case(self.services, self.caller, *arguments, **named)

    def render(self, template: str, /, **context: Any) -> Response:
        """The page that a template renders; its status is that of its ``alert``, or else 200."""
        return render(self.request, template, bell=self.run(notices.number), **context)

    def render_part(self, template: str, /, **context: Any) -> Response:
        """As ``render``, but with status 200 for a part: typing may pass through invalid values."""
        if not self.is_of_part:
            return self.render(template, **context)
        return render(self.request, template, 200, **context)


async def _visit(request: Request, caller: CurrentCaller, services: ServicesDep) -> Visit:
    return Visit(request, caller, services)


#: Declares the parameter of a page function that gets the visit of the current request.
CurrentVisit = Annotated[Visit, Depends(_visit)]
