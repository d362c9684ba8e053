"""``POST /mcp``: one message of the Model Context Protocol, checked like a request of the API.

``app.http.route`` finds the caller, counts the message against the rate limit, and reads its body
within the limits and as strict JSON, before the SDK sees anything.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.models import Body
from app.http.access import any_key
from app.http.route import router

api = router(include_in_schema=False)


class AgentMessage(Body):
    """One request or notification of JSON-RPC 2.0. The protocol reads ``method`` and ``params``."""

    jsonrpc: Literal["2.0"]
    method: str = Field(min_length=1, max_length=100)
    id: int | str | None = None
    params: dict[str, Any] = Field(default_factory=dict)


@api.post("/mcp", dependencies=[any_key])
async def exchange(request: Request, message: AgentMessage) -> Response:
    """Answer one message of an agent. What an agent may spend is the limit of its key."""
    # The parameter is unused: its model has checked the body, and the SDK parses the same bytes
    # again.
    del message
    # The first call loads the SDK, which takes a second; the event loop must not wait for it.
    return await run_in_threadpool(_reply, await request.body())


def _reply(content: bytes) -> Response:
    from app.mcp.exchange import Exchange

    return Exchange(content)
