"""Who is calling: by a key, by a token of an OpenID provider, or by a session of the dashboard.

Every look-up returns None for a caller who is not admitted, the same for all causes. Nothing is
remembered between two calls: a revoked key, a disabled user and a lost role count from the next
request on, in every process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, ParamSpec, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from app.identity.tokens import Tokens
from storage.people.identities import Identities
from storage.people.sessions import Sessions
from storage.people.users import SignedIn, User, Users

P = ParamSpec("P")
Result = TypeVar("Result")

#: Longer than every key that was ever issued.
MAX_KEY_LENGTH = 512

Door = Literal["api", "dashboard"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A user who acts now: the id of the key or of the person that is counted, and the door."""

    user: User
    key_id: str
    door: Door

    @property
    def id(self) -> int:
        return self.user.id

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def roles(self) -> frozenset[str]:
        return self.user.roles

    @property
    def sees_only_own(self) -> bool:
        """True if every account and query that the caller may list is their own."""
        return self.user.roles == {"analyst"}


class LookUp(Protocol):
    """Runs a read of a few rows, on the event loop or in a thread (``app.engine.execution``)."""

    def __call__(
        self, read: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[Result]: ...


async def by_key(key: str, *, look_up: LookUp, users: Users) -> Caller | None:
    """The caller whose key this is."""
    if not may_be_a_key(key):
        return None
    return await _noted(await look_up(users.sign_in, key), users, "api")


async def by_token(
    token: str, *, look_up: LookUp, identities: Identities, tokens: Tokens
) -> Caller | None:
    """The caller for whom the provider issued this access token."""
    claims = await tokens.verified(token)
    if claims is None:
        return None
    subject = (claims.issuer, claims.subject)
    person = await look_up(identities.find, *subject)
    # A stranger becomes a user with the first token that brings a role.
    if person is None:
        is_new = bool(claims.roles)
    else:
        is_new = not person.user.disabled and person.issued < claims.issued
    if is_new:
        person = await run_in_threadpool(identities.admit, *subject, claims.roles, claims.issued)
    if person is None or person.user.disabled or not claims.roles:
        return None
    # Every token of one person counts as one key.
    key_id = f"user {person.user.id}"
    return Caller(replace(person.user, roles=claims.roles), key_id, "api")


async def by_session(
    token: str, *, look_up: LookUp, users: Users, sessions: Sessions
) -> Caller | None:
    """The caller who signed in to the dashboard and was given ``token``."""
    return await _noted(await look_up(sessions.find, token), users, "dashboard")


def may_be_a_key(text: str) -> bool:
    """False for what is not worth a look-up."""
    return 0 < len(text) <= MAX_KEY_LENGTH and text.isascii()


async def _noted(signed_in: SignedIn | None, users: Users, door: Door) -> Caller | None:
    if signed_in is None:
        return None
    if signed_in.stale:
        await run_in_threadpool(users.note_use, signed_in.key_id)
    return Caller(signed_in.user, signed_in.key_id, door)
