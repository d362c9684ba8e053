"""Agents in processes of their own: over standard input and output, and on two replicas."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from app.demo.service import ServiceProcess
from privypurse.cli import cli
from tests.architecture.imports import ROOT
from tests.process.session import CERTIFICATES, QUERY, Session
from tests.support.agents import call
from tests.support.patience import REPLY, WAIT

ASK = QUERY | {"epsilon": "0.01"}


def limited_key(session: Session, epsilon: str) -> str:
    path, body = "/v1/users/ada/keys", {"epsilon": epsilon}
    return str(session.ok("POST", path, session.analyst, json=body)["key"])


def test_the_bridge_serves_an_agent_that_never_sees_the_key(
    service: ServiceProcess, tmp_path: Path
) -> None:
    session = Session.open(service)
    key = limited_key(session, "0.01")
    (tmp_path / "agent.key").write_text(key)
    variables = {
        "PRIVYPURSE_URL": service.url,
        "PRIVYPURSE_KEY_FILE": str(tmp_path / "agent.key"),
        "PYTHONPATH": str(ROOT / "client"),
        "PATH": os.environ["PATH"],
    }
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "privypurse.cli", "mcp"], env=variables
    )

    async def session_of_agent() -> list[Any]:
        async with Client(command) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert tools == ["datasets", "describe", "quote", "ask", "answers", "verify"]
            assert client.instructions
            assert "receipt" in client.instructions
            return [await call(client, "ask", **ASK) for _ in range(2)]

    answered, refused = asyncio.run(session_of_agent())
    assert len(answered["receipt"]) == 64
    assert refused["type"] == "/problems/budget-exhausted"
    assert key not in str([answered, refused])
    assert session.spent() == "0.01"
    wrong = CliRunner().invoke(cli, ["mcp"], env=variables | {"PRIVYPURSE_KEY": "pp_a_b"})
    assert wrong.exit_code == 1
    assert "key" in wrong.stderr


#: The number of calls, how many of them fit the budget, and how many run at the same time. With
#: more connections from one address the service would close some.
CALLS, FIT, AT_ONCE = 1000, 100, 20


@pytest.mark.slow
def test_a_thousand_calls_on_two_replicas_never_overspend_a_key(
    start: Callable[[], ServiceProcess],
) -> None:
    """Half of the calls through ``/mcp`` and half through ``/v1``, 250 at each replica each way."""
    one = start().wait_ready()
    session = Session.open(one)
    two = start().wait_ready()
    key = limited_key(session, "1")
    headers = {"Authorization": f"Bearer {key}"}

    async def answered(ask: Callable[[], Awaitable[int]]) -> list[int]:
        """The status of each call, sent again while the service is busy."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one_call() -> int:
            async with slots:
                while (status := await ask()) in (429, 503):
                    await asyncio.sleep(0.1)
                return status

        return await asyncio.gather(*(one_call() for _ in range(CALLS // 4)))

    async def by_tool(url: str) -> list[int]:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=REPLY) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):

            async def ask() -> int:
                reply = await call(client, "ask", **ASK)
                return 201 if reply["status"] == "answered" else int(reply["status"])

            return await answered(ask)

    async def by_route(url: str) -> list[int]:
        sent = headers | WAIT
        async with httpx.AsyncClient(headers=sent, timeout=REPLY, verify=CERTIFICATES) as http:

            async def ask() -> int:
                return (await http.post(f"{url}/v1/queries", json=ASK)).status_code

            return await answered(ask)

    async def race() -> list[list[int]]:
        urls = (one.url, two.url)
        return await asyncio.gather(*(way(url) for way in (by_tool, by_route) for url in urls))

    statuses = Counter(status for group in asyncio.run(race()) for status in group)
    assert statuses == {201: FIT, 403: CALLS - FIT}
    assert session.spent() == "1"
    assert session.ok("GET", "/v1/ledger/verification", session.analyst)["first_bad"] is None
