"""The bridge of agents: what it says when it cannot reach the service."""

from __future__ import annotations

import asyncio

import pytest
from mcp.shared.exceptions import MCPError

from privypurse import LoginFailed
from privypurse.cli import bridge


def test_a_sign_in_that_has_ended_is_an_error_of_the_protocol() -> None:
    def ended() -> str:
        raise LoginFailed("the sign-in has expired: privypurse login")

    async def call() -> None:
        async with bridge._connected("http://purse.example", ended):
            pytest.fail("there is no connection without a key")

    # The bridge passes an MCPError on to the agent. Any other exception would end the bridge.
    with pytest.raises(MCPError, match="privypurse login"):
        asyncio.run(call())
