"""``privypurse mcp``: the tools of agents on standard input and output."""

from __future__ import annotations

from collections.abc import Callable

import typer

from privypurse.cli.service import Credentials, fail, service
from privypurse.device_flow import Login


def mcp(context: typer.Context) -> None:
    """Serve the tools for agents over standard input and output (Model Context Protocol)."""
    try:
        # Imported here, because the SDK of the Model Context Protocol is an optional dependency,
        # and takes a second to load.
        from privypurse.cli.bridge import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "httpx2"):
            raise
        fail("the SDK of the protocol is not installed: pip install 'privypurse[mcp]'", 2)
    with service(context) as purse:
        # This request fails with a clear message before an agent begins, if the address or the key
        # is wrong.
        purse.me()
        credentials: Credentials = context.find_root().obj
        key = credentials.read_key()
        serve(credentials.url.rstrip("/"), key.token if isinstance(key, Login) else lambda: key)


COMMANDS: dict[str, Callable[..., None]] = {"mcp": mcp}
