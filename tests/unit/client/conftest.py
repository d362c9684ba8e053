"""A scripted service: its replies in turn, and the requests that it received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from privypurse import AsyncPrivyPurse, PrivyPurse, connection

ANSWERED: dict[str, Any] = {
    "id": "q1",
    "status": "answered",
    "dataset": "star",
    "dataset_version": 1,
    "query": {"kind": "top_k"},
    "charge": {"epsilon": "0.5", "delta": "0", "neighbouring": "edge"},
    "remaining": {"epsilon": "1.5", "delta": "0"},
    "steps": [],
    "answer": {"selected": [4, 2]},
    "receipt": "ab",
}
#: A scripted reply (status, body, headers), or an exception of the connection that is raised in its
#: place.
Turn = tuple[int, Any, dict[str, str]] | type[httpx.TransportError]


def problem(status: int, slug: str, retry_after: str | None = None, **members: Any) -> Turn:
    headers = {"Content-Type": "application/problem+json"}
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    body = {"type": f"/problems/{slug}", "title": slug, "status": status, **members}
    return status, body, headers


class Script:
    """Plays turns in order, then repeats ``after``; without ``after`` one more request fails."""

    def __init__(self, turns: list[Turn], after: Turn | None) -> None:
        self.turns, self.after = iter(turns), after
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        turn = next(self.turns, self.after)
        assert turn is not None, f"a request too many: {request.method} {request.url}"
        if isinstance(turn, type):
            raise turn("lost", request=request)
        status, body, headers = turn
        headers = {"Content-Type": "application/json", **headers}
        content = body if isinstance(body, str) else json.dumps(body)
        return httpx.Response(status, content=content, headers=headers)

    @property
    def done(self) -> bool:
        return next(self.turns, None) is None

    @property
    def lines(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.requests]

    def keys(self) -> set[str]:
        """The idempotency keys of all queries."""
        return {r.headers["Idempotency-Key"] for r in self.requests if r.method == "POST"}


Play = Callable[..., tuple[PrivyPurse, Script]]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only ``sleep`` moves, so that waiting takes no time; returns the pauses."""
    pauses: list[float] = []
    monkeypatch.setattr(connection.time, "sleep", pauses.append)
    monkeypatch.setattr(connection.time, "monotonic", lambda: sum(pauses))
    return pauses


class Awaited:
    """The calls of an ``AsyncPrivyPurse``, each run to its end in an event loop of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.purse = AsyncPrivyPurse(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            result = getattr(self.purse, name)(*arguments, **named)
            return asyncio.run(collected(result))

        return call

    def __repr__(self) -> str:
        return repr(self.purse)


async def collected(result: Any) -> Any:
    """What is awaited, or an iterator over all that is read with ``async for``."""
    if hasattr(result, "__aiter__"):
        return iter([item async for item in result])
    return await result


@pytest.fixture(params=[PrivyPurse, Awaited], ids=["sync", "async"])
def play(pauses: list[float], request: pytest.FixtureRequest) -> Iterator[Play]:
    """A client of a script, for threads and for event loops."""
    del pauses
    scripts = []

    def start(*turns: Turn, after: Turn | None = None, **options: Any) -> tuple[PrivyPurse, Script]:
        script = Script(list(turns), after)
        scripts.append(script)
        transport = httpx.MockTransport(script)
        return request.param("http://service", "pp_x", transport=transport, **options), script

    yield start
    assert all(script.done for script in scripts), "turns were left over"
