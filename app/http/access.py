"""Who is asking, and which roles may use which route.

Every route declares its callers as a dependency: ``allow("owner")``, ``any_key`` or ``anyone``;
``app.http.route`` refuses to build a route without one, and checks the caller before it reads
the body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request
from fastapi.params import Depends as DependsMarker
from starlette.concurrency import run_in_threadpool

from app.config.roles import ROLES as ROLES
from app.config.roles import Role as Role
from app.contract.errors import Unauthenticated
from app.engine.execution import quickly
from app.http.dependencies import services_of
from app.identity.tokens import Tokens, looks_like_a_token
from app.usecases.services import Services
from storage.people.users import User

#: Longer than every key that was ever issued.
MAX_KEY_LENGTH = 512


@dataclass(frozen=True)
class Access:
    """Who may use a route: everyone, every holder of a key, or the holders of some roles."""

    roles: frozenset[Role]
    public: bool = False

    async def __call__(self) -> None:
        """Nothing to do when FastAPI gets here: ``app.http.route`` has enforced it already."""

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
    """The user whose key or token came with the request.

    Raises: Unauthenticated, the same for all causes.
    """
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer":
        raise Unauthenticated
    services = services_of(request)
    if services.tokens is not None and looks_like_a_token(key):
        return await _by_token(request, services, services.tokens, key)
    if not key or len(key) > MAX_KEY_LENGTH or not key.isascii():
        raise Unauthenticated
    signed_in = await quickly(services.database, services.users.sign_in, key)
    if signed_in is None:
        raise Unauthenticated
    request.state.key_id = signed_in.key_id  # for what is counted by key
    if signed_in.stale:
        await run_in_threadpool(services.users.note_use, signed_in.key_id)
    return signed_in.user


async def _by_token(request: Request, services: Services, tokens: Tokens, token: str) -> User:
    claims = await tokens.verified(token)
    if claims is None:
        raise Unauthenticated
    identities, who = services.identities, (claims.issuer, claims.subject)
    known = await quickly(services.database, identities.find, *who)
    # A stranger is somebody here from the first token on that brings a role.
    if claims.roles if known is None else not known.user.disabled and known.issued < claims.issued:
        known = await run_in_threadpool(identities.admit, *who, claims.roles, claims.issued)
    if known is None or known.user.disabled or not claims.roles:
        raise Unauthenticated
    request.state.key_id = f"user {known.user.id}"  # every token of one person counts as one key
    return replace(known.user, roles=claims.roles)


async def _current_user(request: Request) -> User:
    user: User = request.state.user
    return user


#: The authenticated caller, for route functions.
CurrentUser = Annotated[User, Depends(_current_user)]
