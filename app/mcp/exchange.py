"""One message of the Model Context Protocol, by the official SDK.

Danger: this module takes a second to import. ``app.mcp.route`` imports it at the first message.

The server keeps no session: each message carries its key, and any replica answers it. So a key
that is revoked, or an agent that moves to another replica, needs no special case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app import __version__
from app.config.settings import MEGABYTE
from app.http.dependencies import services_of
from app.mcp.tools import TOOLS, outcome

INSTRUCTIONS = (
    "Differentially private queries over private datasets. Every `ask` spends privacy budget, "
    "which does not come back: list `datasets`, `describe` one, `quote` the query, then `ask`. "
    "Answers hold noise on purpose, so asking again only costs more; read `answers` instead. "
    "Report every number with its interval, its answer id and its receipt."
)


def _listed() -> list[types.Tool]:
    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.schema,
            annotations=types.ToolAnnotations(
                read_only_hint=tool.reads_only, open_world_hint=False, destructive_hint=False
            ),
        )
        for tool in TOOLS.values()
    ]


async def _list_tools(
    _: ServerRequestContext[Any, Any], __: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_listed())


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    request = context.request
    assert isinstance(request, Request), "every message comes over HTTP"
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, "no such tool")
    result = await outcome(
        tool,
        services_of(request),
        request.state.caller,
        params.arguments or {},
        request.state.request_id,
    )
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=json.loads(result.text),
        is_error=result.is_error,
    )


def _input_schema(name: str) -> Mapping[str, Any] | None:
    return TOOLS[name].schema if name in TOOLS else None


SERVER: Server[Any] = Server(
    "privypurse",
    version=__version__,
    title="PrivyPurse",
    instructions=INSTRUCTIONS,
    get_tool_input_schema=_input_schema,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
)
# All telemetry is turned off explicitly. Environment variables could otherwise enable traces, which
# would contain the arguments of tools.
SERVER.middleware.clear()


class Exchange(Response):
    """The reply of the SDK to one message, whose body is already read and checked."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = False

        async def body_first() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": self._content, "more_body": False}

        # Each message gets a session manager of its own. Nothing is lost by that, because a
        # stateless manager keeps nothing between two messages.
        manager = StreamableHTTPSessionManager(
            SERVER, json_response=True, stateless=True, max_request_body_size=MEGABYTE
        )
        async with manager.run():
            await manager.handle_request(scope, body_first, send)
