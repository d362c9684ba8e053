"""Sends a request until there is a reply to it, and never twice what must happen once.

A request is sent again after a lost connection only when that is safe: reading, setting, and
questions under an idempotency key. Others are sent again only when the service says, or the failed
connection shows, that nothing happened.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from privypurse.problems import Problem, Unreachable, problem_of
from privypurse.version import __version__

#: Seconds of patience with a service that never answered: its address may be wrong.
FIRST_CONTACT = 5.0
#: Seconds before the first and between later attempts, doubling in between.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: Longer than the service is ever asked to wait (``Prefer: wait``).
READ_TIMEOUT = 60.0
#: What a proxy answers while the service behind it is away.
AWAY = frozenset({502, 503, 504})
LOST = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError, httpx.ProxyError)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Connection:
    """One service as one user sees it.

    ``patience`` is in seconds: how long the service may be away or busy at a time.
    """

    def __init__(
        self, url: str, key: str, *, patience: float, transport: httpx.BaseTransport | None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("the address of the service starts with http:// or https://")
        self.url = url.rstrip("/")
        self._patience = patience
        self._reached = False
        self._http = httpx.Client(
            base_url=self.url,
            headers={
                "Authorization": f"Bearer {key.strip()}",
                "User-Agent": f"privypurse-client/{__version__}",
            },
            timeout=httpx.Timeout(READ_TIMEOUT, connect=10.0),
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def json(self, method: str, path: str, **request: Any) -> Any:
        """The JSON of the reply; None when it has none."""
        reply = self.send(method, path, **request)
        return reply.json() if reply.content else None

    def send(
        self, method: str, path: str, *, repeatable: bool = True, **request: Any
    ) -> httpx.Response:
        """The successful reply. Raises: Problem, or Unreachable when patience is over."""
        impatient_at: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                reply = self._http.request(method, path, **request)
            except LOST as error:
                failure: Problem | Unreachable = Unreachable(f"{self.url}: {error or 'no reply'}")
                if not isinstance(error, NOT_SENT):
                    # Somebody took the request, and may have done what it asks for.
                    self._reached = True
                    if not repeatable:
                        raise failure from error
            else:
                self._reached = True
                if reply.is_success:
                    return reply
                failure = problem_of(reply)
                away = repeatable and reply.status_code in AWAY and failure.slug != "frozen"
                if not (failure.temporary or away):
                    raise failure
            now = time.monotonic()
            if impatient_at is None:
                patience = self._patience if self._reached else min(FIRST_CONTACT, self._patience)
                impatient_at = now + patience
            asked = failure.retry_after if isinstance(failure, Problem) else None
            # Spread out, so that clients of a service that comes back do not all come at once.
            wait = max(pause * random.uniform(0.5, 1.0), asked or 0.0)
            if now + wait > impatient_at:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    def pages(self, path: str, **parameters: Any) -> Any:
        """Every item of a list, newest first, page by page."""
        wanted: Mapping[str, Any] = {k: v for k, v in parameters.items() if v is not None}
        cursor: str | None = None
        while True:
            query = {**wanted, "limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = self.json("GET", path, params=query)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")
