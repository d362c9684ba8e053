"""Find the caller of a request by a key, an OpenID token or a session of the dashboard.

A caller who is not admitted gets Unauthenticated, whatever the cause. Nothing is cached between
two calls, so a revoked key, a disabled user and a lost role take effect with the next request, in
every process.
"""

from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from app.contract.errors import Unauthenticated
from app.engine.execution import inline_if_embedded
from app.identity.callers import Caller, Door
from app.identity.tokens import Claims, Tokens, looks_like_a_token
from app.usecases.services import Services
from storage.people.users import SignedIn, User

#: Longer texts cannot be keys, because every key that was ever issued is shorter. They are refused
#: without a look-up.
MAX_KEY_LENGTH = 512


async def caller_of_credential(services: Services, credential: str) -> Caller:
    """The caller with this key or access token. Raises: Unauthenticated, whatever the cause."""
    if services.tokens is not None and looks_like_a_token(credential):
        return await _caller_of_token(services, services.tokens, credential)
    if not _may_be_a_key(credential):
        raise Unauthenticated
    signed_in = await inline_if_embedded(services.database, services.users.sign_in, credential)
    return await _noted(services, signed_in, "api")


async def caller_of_session(services: Services, token: str) -> Caller:
    """The caller of the session ``token``. Raises: Unauthenticated, whatever the cause."""
    signed_in = await inline_if_embedded(services.database, services.sessions.find, token)
    return await _noted(services, signed_in, "dashboard")


def open_session(services: Services, key: str) -> str | None:
    """The token of a new session; None if the key is not valid."""
    return services.sessions.open(key) if _may_be_a_key(key) else None


def close_session(services: Services, token: str) -> None:
    """End the session of this token."""
    services.sessions.close(token)


async def _caller_of_token(services: Services, tokens: Tokens, token: str) -> Caller:
    """The caller for whom the provider issued this access token."""
    claims = await tokens.verified(token)
    if claims is None:
        raise Unauthenticated
    user = await person_of(services, claims)
    # The rate limit counts all tokens of one person together, as if they were one key, because a
    # person may get any number of tokens.
    return Caller(replace(user, roles=claims.roles), f"user {user.id}", "api")


async def person_of(services: Services, claims: Claims) -> User:
    """The user whom the provider names, created by the first token that grants a role.

    The roles of the latest token are stored. Raises: Unauthenticated without any role, or if the
    user is disabled.
    """
    identities, subject = services.identities, (claims.issuer, claims.subject)
    person = await inline_if_embedded(services.database, identities.find, *subject)
    # A person who has never signed in becomes a user by the first token that grants a role.
    if person is None:
        is_new = bool(claims.roles)
    else:
        is_new = not person.user.disabled and person.issued < claims.issued
    if is_new:
        person = await run_in_threadpool(identities.admit, *subject, claims.roles, claims.issued)
    if person is None or person.user.disabled or not claims.roles:
        raise Unauthenticated
    return person.user


async def _noted(services: Services, signed_in: SignedIn | None, door: Door) -> Caller:
    if signed_in is None:
        raise Unauthenticated
    if signed_in.stale:
        await run_in_threadpool(services.users.note_use, signed_in.key_id)
    return Caller(signed_in.user, signed_in.key_id, door)


def _may_be_a_key(text: str) -> bool:
    """False for a text that cannot be a key, so that it needs no look-up."""
    return 0 < len(text) <= MAX_KEY_LENGTH and text.isascii()
