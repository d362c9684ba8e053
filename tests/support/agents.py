"""Agents of the tests: clients of the official SDK, on the event loop of the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.service import Service

T = TypeVar("T")
URL = "http://127.0.0.1:8000/mcp"
#: The two ways in which agents open a connection by MCP: ``legacy`` with a handshake, ``auto``
#: without.
MODES = ("legacy", "auto")


class Agent:
    """Calls tools with one key; every call opens its own connection."""

    def __init__(self, service: Service, key: str | None, mode: str = "auto") -> None:
        self._service, self._key, self._mode = service, key, mode

    def run(self, session: Callable[[Client], Awaitable[T]]) -> T:
        """The result of ``session``, which gets a connected client."""
        portal = self._service.client.portal
        assert portal is not None, "the service has not started"
        return portal.call(partial(self.session, session))

    async def session(self, session: Callable[[Client], Awaitable[T]]) -> T:
        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        transport = httpx2.ASGITransport(app=self._service.client.app)
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers) as http,
            Client(streamable_http_client(URL, http_client=http), mode=self._mode) as client,
        ):
            return await session(client)

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured result of a tool; of a refusal, the problem."""
        return self.run(lambda client: call(client, tool, **arguments))


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured result of a tool, which its text repeats."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    value = result.structured_content
    assert json.loads(content.text) == value  # type: ignore[union-attr]
    assert result.is_error == ("type" in value and "title" in value)
    return value
