"""What an OpenID provider publishes about itself, fetched at most once per minute.

Danger: anybody can make the service look something up, and each request must not cause a fetch,
also while the provider fails. Callers share one fetch, and what was read is believed for an hour.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import structlog

from app.config.trust import trusted

log = structlog.get_logger("privypurse.identity")

#: The least number of seconds between two attempts to fetch a value from the provider, successful
#: or not. So requests cannot cause a fetch each.
BETWEEN = 60.0
#: A value of the provider, such as its signing keys, is fetched again if it is older than this many
#: seconds. So a withdrawn key stops working.
FRESH = 600.0
#: Seconds after which a value is no longer used, even if the provider cannot be reached.
BELIEVED = 3600.0
#: Seconds within which one whole reply of the provider must arrive.
PATIENCE = 5.0
LARGEST_REPLY = 256 * 1024

T = TypeVar("T")


class Unfetched(Exception):
    """The provider did not answer, or its answer is not what OpenID Connect prescribes."""


class Published(Generic[T]):
    """One value that the provider publishes. An instance belongs to one event loop.

    ``fetch`` reads it, in a thread: the provider decides on its size and so on the time. ``what``
    names it in the log.
    """

    def __init__(self, what: str, fetch: Callable[[], T]) -> None:
        self._what, self._fetch_now = what, fetch
        self._clock = time.monotonic
        self._value: T | None = None
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def get(self, suffices: Callable[[T], bool] = lambda _: True) -> T | None:
        """The value; None if it could not be fetched or is too old.

        It is fetched again if it is not fresh or not one that ``suffices``.
        """
        if self._value is None or self._age() > FRESH or not suffices(self._value):
            await self._refresh()
        return None if self._age() > BELIEVED else self._value

    def _age(self) -> float:
        return self._clock() - self._fetched

    async def _refresh(self) -> None:
        """Fetch the value, unless that was tried within ``BETWEEN``. Callers share one fetch."""
        if self._fetching is None:
            if self._clock() - self._tried < BETWEEN:
                return
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
        # The fetch is shielded, because a caller who is cancelled must not cancel it for the others
        # that wait for it.
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            self._value = await asyncio.to_thread(self._fetch_now)
            self._fetched = self._clock()
        except Exception as error:
            log.warning(
                f"the {self._what} of the identity provider were not fetched",
                error=type(error).__qualname__,
            )
        finally:
            self._fetching = None


def fetched(url: str) -> dict[str, Any]:
    """The JSON object at ``url``, without redirection, in bounded time and size."""
    # httpx is imported here, because it takes a tenth of a second to load, and most services have
    # no OpenID provider.
    import httpx

    end = time.monotonic() + PATIENCE
    content = bytearray()
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    with (
        httpx.Client(
            timeout=PATIENCE, follow_redirects=False, trust_env=False, verify=trusted()
        ) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        if reply.status_code != 200:
            raise Unfetched
        for chunk in reply.iter_raw():
            content += chunk
            if len(content) > LARGEST_REPLY or time.monotonic() > end:
                raise Unfetched
    value = json.loads(content)
    if not isinstance(value, dict):
        raise Unfetched
    return value
