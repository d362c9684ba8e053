"""Who is asking, and which roles may use which route.

Every route declares its callers as a dependency: ``allow("owner")``, ``any_key`` or ``anyone``;
``app.routing`` refuses to build a route that does not, and checks them before the body is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fastapi import Depends, Request
from fastapi.params import Depends as DependsMarker
from starlette.concurrency import run_in_threadpool

from app.dependencies import services_of
from app.errors import Unauthenticated
from app.execution import quickly
from storage.users import User

Role = Literal["admin", "owner", "analyst", "auditor"]
ROLES: frozenset[Role] = frozenset(get_args(Role))

#: Longer than every key that was ever issued.
MAX_KEY_LENGTH = 512


@dataclass(frozen=True)
class Access:
    """Who may use a route: everyone, every holder of a key, or the holders of some roles."""

    roles: frozenset[Role]
    public: bool = False

    async def __call__(self) -> None:
        """Nothing to do when FastAPI gets here: ``app.routing`` has enforced it already."""

    def admits(self, user: User) -> bool:
        return bool(self.roles & user.roles)


def allow(*roles: Role) -> DependsMarker:
    """Only callers with one of these roles may use the route; others are 403 ``forbidden``."""
    if not roles:
        raise ValueError("name at least one role")
    return DependsMarker(Access(frozenset(roles)))


#: Whoever holds a key of an enabled user; what they may see is the route's own business.
any_key = DependsMarker(Access(ROLES))
#: No key needed.
anyone = DependsMarker(Access(frozenset(), public=True))


async def authenticate(request: Request) -> User:
    """The user whose key came with the request. Raises Unauthenticated, the same for all causes."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key or len(key) > MAX_KEY_LENGTH or not key.isascii():
        raise Unauthenticated
    services = services_of(request)
    signed_in = await quickly(services.database, services.users.sign_in, key)
    if signed_in is None:
        raise Unauthenticated
    request.state.key_id = signed_in.key_id  # for what is counted by key
    if signed_in.stale:
        await run_in_threadpool(services.users.note_use, signed_in.key_id)
    return signed_in.user


async def _current_user(request: Request) -> User:
    user: User = request.state.user
    return user


#: The authenticated caller, for route functions.
CurrentUser = Annotated[User, Depends(_current_user)]
