"""Who is calling, and sessions of the dashboard."""

from __future__ import annotations

from functools import partial

from app.contract.errors import Unauthenticated
from app.engine.execution import inline_if_embedded
from app.identity import callers
from app.identity.callers import Caller
from app.identity.tokens import looks_like_a_token
from app.usecases.services import Services


async def caller_of_credential(services: Services, credential: str) -> Caller:
    """The caller with this key or access token. Raises: Unauthenticated, for every cause."""
    look_up = partial(inline_if_embedded, services.database)
    if services.tokens is not None and looks_like_a_token(credential):
        identities, tokens = services.identities, services.tokens
        caller = await callers.by_token(
            credential, look_up=look_up, identities=identities, tokens=tokens
        )
    else:
        caller = await callers.by_key(credential, look_up=look_up, users=services.users)
    return _admitted(caller)


async def caller_of_session(services: Services, token: str) -> Caller:
    """The caller who signed in. Raises: Unauthenticated, for every cause."""
    caller = await callers.by_session(
        token,
        look_up=partial(inline_if_embedded, services.database),
        users=services.users,
        sessions=services.sessions,
    )
    return _admitted(caller)


def _admitted(caller: Caller | None) -> Caller:
    if caller is None:
        raise Unauthenticated
    return caller


def open_session(services: Services, key: str) -> str | None:
    """The token of a new session; None for a key that opens nothing."""
    return services.sessions.open(key) if callers.may_be_a_key(key) else None


def close_session(services: Services, token: str) -> None:
    """End the session of this token."""
    services.sessions.close(token)
