"""The address of the service and the key of the user, for all commands.

Both are options that come before the command, or environment variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from privypurse.client import PrivyPurse
from privypurse.device_flow import Login, default_file
from privypurse.problems import PurseError

UrlOption = Annotated[
    str, typer.Option("--url", envvar="PRIVYPURSE_URL", help="Address of the service.")
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="PRIVYPURSE_KEY",
        help="Key of the user. Others on this machine may see options: prefer a file.",
    ),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option("--key-file", envvar="PRIVYPURSE_KEY_FILE", help="File that holds the key."),
]
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Credentials:
    """The address and the key, from the options before the command or the environment."""

    url: str
    key: str | None
    key_file: Path | None

    def read_key(self) -> str | Login:
        """The key itself, else the sign-in on this machine. Raises: OSError, LoginFailed."""
        if self.key:
            return self.key
        if self.key_file is not None:
            key = self.key_file.read_text("utf-8").strip()
            return key or fail(f"{self.key_file} is empty: it holds no key", 2)
        if not default_file().exists():
            fail("no key: set PRIVYPURSE_KEY_FILE or PRIVYPURSE_KEY, or use privypurse login", 2)
        return Login(self.url)


@contextmanager
def service(context: typer.Context) -> Iterator[PrivyPurse]:
    """The client for one command. An error ends the command with one message and status 1."""
    credentials: Credentials = context.find_root().obj
    try:
        with PrivyPurse(credentials.url, credentials.read_key()) as purse:
            yield purse
    except (PurseError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the command with a reason on stderr."""
    typer.echo(reason, err=True)
    raise typer.Exit(status)
