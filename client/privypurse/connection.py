"""Sends a request until it has a reply, and never sends twice a request that must happen once.

After a lost connection a request is sent again only if that is safe: reads, replacements, and
queries under an idempotency key. Other requests are sent again only if the service replied that
nothing happened, or if the connection failed before the request was sent.
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

#: Seconds of retries while the service has never replied, because its address may be wrong.
FIRST_CONTACT = 5.0
#: Seconds of the pause before the second attempt, and of the longest pause. Each pause is twice the
#: one before it.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: Seconds to wait for a reply. The service replies earlier: this client never asks it to wait as
#: long in the header ``Prefer``.
READ_TIMEOUT = 60.0
#: HTTP statuses that a proxy sends while it cannot reach the service behind it.
AWAY = frozenset({502, 503, 504})
LOST = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError, httpx.ProxyError)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Connection:
    """One service, used with the key or the sign-in of one user.

    ``patience``: seconds for which the service may be away or busy at a time.
    """

    def __init__(
        self,
        url: str,
        key: str | httpx.Auth,
        *,
        patience: float,
        transport: httpx.BaseTransport | None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("the address of the service starts with http:// or https://")
        if isinstance(key, str) and not (key.strip() and key.isascii()):
            raise ValueError("a key is a text such as pp_…_…, without other characters than ASCII")
        self.url = url.rstrip("/")
        self._patience = patience
        self._reached = False
        headers = {"User-Agent": f"privypurse-client/{__version__}"}
        if isinstance(key, str):
            headers["Authorization"] = f"Bearer {key.strip()}"
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            auth=None if isinstance(key, str) else key,
            timeout=httpx.Timeout(READ_TIMEOUT, connect=10.0),
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def json(self, method: str, path: str, **request: Any) -> Any:
        """Send a request and return the JSON of its reply; None if the reply is empty."""
        reply = self.send(method, path, **request)
        return reply.json() if reply.content else None

    def send(
        self, method: str, path: str, *, repeatable: bool = True, **request: Any
    ) -> httpx.Response:
        """Send a request and return its successful reply.

        Raises: Problem for a refusal; Unreachable after ``patience`` seconds of retries.
        """
        first_failure: float | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                reply = self._http.request(method, path, **request)
            except LOST as error:
                failure: Problem | Unreachable = Unreachable(f"{self.url}: {error or 'no reply'}")
                if not isinstance(error, NOT_SENT):
                    # The service may have carried out the request, so only a repeatable one is sent
                    # again.
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
            first_failure = now if first_failure is None else first_failure
            # The patience is worked out for each attempt, because the service may reply for the
            # first time between two attempts.
            patience = self._patience if self._reached else min(FIRST_CONTACT, self._patience)
            retry_after = failure.retry_after if isinstance(failure, Problem) else None
            # The pause is random, so that not all clients of a restarted service send at the same
            # moment.
            wait = max(pause * random.uniform(0.5, 1.0), retry_after or 0.0)
            if now + wait > first_failure + patience:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    def pages(self, path: str, **parameters: Any) -> Any:
        """Every item of a list, newest first, page by page."""
        filters: Mapping[str, Any] = {k: v for k, v in parameters.items() if v is not None}
        cursor: str | None = None
        while True:
            query = {**filters, "limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = self.json("GET", path, params=query)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return


def part(name: str) -> str:
    """A name, percent-encoded as one segment of a URL path."""
    return quote(name, safe="")
