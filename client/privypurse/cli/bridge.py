"""Passes the messages of one agent on to the service at ``/mcp``.

The service alone knows the tools, so the bridge works with any version of them. The key stays in
this process: the agent never reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from privypurse.problems import PurseError
from privypurse.version import __version__

#: Seconds to wait for a reply. A call of a tool may wait for a deadline, by its argument at most
#: 300 seconds.
TIMEOUT = httpx2.Timeout(10.0, read=330.0)


def serve(url: str, key: Callable[[], str]) -> None:
    """Serve the agent on standard input and output until it closes them.

    ``key``: returns the key, or a token that has not expired.
    """
    asyncio.run(_serve(url, key))


@asynccontextmanager
async def _connected(url: str, key: Callable[[], str]) -> AsyncIterator[Client]:
    """A connection for one call, so that a service that restarts costs one call at most.

    Raises: MCPError alone, because other exceptions would end the bridge.
    """
    try:
        bearer = await asyncio.to_thread(key)
        agent = f"privypurse-mcp/{__version__}"
        headers = {"Authorization": f"Bearer {bearer}", "User-Agent": agent}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            yield client
    except MCPError:
        raise
    except PurseError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None
    except Exception:
        # The SDK of the protocol raises groups of exceptions, so no single class can be named here.
        raise MCPError(types.INTERNAL_ERROR, f"no reply from {url}") from None


async def _serve(url: str, key: Callable[[], str]) -> None:
    async def list_tools(
        _: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        async with _connected(url, key) as client:
            return await client.list_tools(cursor=params.cursor if params else None)

    async def call_tool(
        _: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async with _connected(url, key) as client:
            return await client.call_tool(params.name, params.arguments)

    async with _connected(url, key) as client:
        instructions = client.instructions
    server: Server[Any] = Server(
        "privypurse",
        version=__version__,
        title="PrivyPurse",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
