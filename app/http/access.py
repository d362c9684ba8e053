"""The roles that may use a route, and the authentication of its callers.

Every route declares its callers as a dependency: ``allow("owner")``, ``any_key`` or ``anyone``.
``app.http.route`` refuses to build a route without such a dependency, and checks the caller before
it reads the body.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.params import Depends as DependsMarker

from app.config.roles import ROLES as ROLES
from app.config.roles import Role as Role
from app.contract.errors import Unauthenticated
from app.http.dependencies import services_of
from app.http.headers import header
from app.identity.callers import Caller as Caller
from app.usecases.people.sessions import caller_of_credential


class Declaration:
    """A dependency of a route that declares a rule, which ``app.http.route`` enforces."""

    async def __call__(self) -> None:
        """Does nothing, because the route class enforces the rule itself."""


@dataclass(frozen=True)
class Access(Declaration):
    """The callers who may use a route: everyone, or all who hold one of some roles."""

    roles: frozenset[Role]
    public: bool = False

    def admits(self, caller: Caller) -> bool:
        return bool(self.roles & caller.roles)


def allow(*roles: Role) -> DependsMarker:
    """Only callers with one of these roles may use the route; others get 403 ``forbidden``."""
    if not roles:
        raise ValueError("name at least one role")
    return DependsMarker(Access(frozenset(roles)))


#: Every caller with a valid key may use the route. The use case decides what they may see.
any_key = DependsMarker(Access(ROLES))
#: Everybody may use the route, also without a key.
anyone = DependsMarker(Access(frozenset(), public=True))


async def authenticate(request: Request) -> Caller:
    """The caller whose key or token is in the request's header. Raises: Unauthenticated."""
    scheme, _, credential = (header(request, b"authorization") or "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated
    return await caller_of_credential(services_of(request), credential.strip())


async def _current_caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


#: The authenticated caller, for route functions.
CurrentCaller = Annotated[Caller, Depends(_current_caller)]
