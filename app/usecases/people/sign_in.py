"""Signing in at the dashboard by an OpenID provider, and leaving it.

The session ends with the provider's token at the latest, and the roles are those of the latest
token of the person.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from starlette.concurrency import run_in_threadpool

from app.contract.errors import Busy, Unauthenticated
from app.identity.code_flow import CodeFlow, Departure, ProviderAway, SignInRefused
from app.usecases.people.sessions import person_of
from app.usecases.services import Services
from storage.errors import NotFound

log = structlog.get_logger("privypurse.identity")


def is_offered(services: Services) -> bool:
    """True if people may sign in at the dashboard by an OpenID provider."""
    return services.code_flow is not None


async def begin(services: Services) -> Departure:
    """Where a browser goes to sign in. Raises: NotFound if not offered; Busy."""
    flow = _flow(services)
    try:
        return await flow.begin()
    except ProviderAway:
        raise Busy(retry_after=5) from None


async def finish(
    services: Services, secret: str, returned: Mapping[str, str], address: str | None
) -> str:
    """The token of a new session, for a browser that the provider sends back.

    ``secret`` is that of the departure, and ``returned`` are the parameters of the return.
    ``address``: the client, or None if clients share an address. Raises: NotFound if not offered;
    Unauthenticated, whatever the cause; Busy.
    """
    flow = _flow(services)
    try:
        claims = await flow.claims(secret, returned, address)
    except SignInRefused as refusal:
        log.warning("a person was not signed in", error=str(refusal))
        raise Unauthenticated from None
    except ProviderAway:
        raise Busy(retry_after=5) from None
    user = await person_of(services, claims)
    until_us = claims.expires * 1_000_000
    return await run_in_threadpool(services.sessions.open_of_identity, user, until_us)


async def leaving(services: Services) -> str | None:
    """Where a person ends the session with the provider too; None if it has no such address.

    Raises: NotFound if not offered; Busy.
    """
    flow = _flow(services)
    try:
        return await flow.leaving()
    except ProviderAway:
        raise Busy(retry_after=5) from None


def _flow(services: Services) -> CodeFlow:
    if services.code_flow is None:
        raise NotFound
    return services.code_flow
