"""Which service a command speaks to, and in whose name: options that come before the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from privypurse import PrivyPurse

UrlOption = Annotated[
    str, typer.Option("--url", envvar="PRIVYPURSE_URL", help="Address of the service.")
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="PRIVYPURSE_KEY",
        help="Key of its user. Others on this machine may see options: prefer a file.",
    ),
]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", envvar="PRIVYPURSE_KEY_FILE", help="File of the key.")
]
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Caller:
    """What was said before the command."""

    url: str
    key: str | None
    key_file: Path | None

    def read_key(self) -> str:
        if self.key:
            return self.key
        if self.key_file is None:
            fail("whose key? Set PRIVYPURSE_KEY_FILE or PRIVYPURSE_KEY, or say --key-file", 2)
        return self.key_file.read_text("utf-8").strip()


@contextmanager
def service(context: typer.Context) -> Iterator[PrivyPurse]:
    """The client for one command; what goes wrong ends the command with a line and status 1."""
    # Imported here: a machine that only serves needs no client.
    try:
        from privypurse import PrivyPurse, PurseError
    except ModuleNotFoundError:
        fail("this command needs the client: pip install ./client", 2)

    caller: Caller = context.find_root().obj
    try:
        with PrivyPurse(caller.url, caller.read_key()) as purse:
            yield purse
    except (PurseError, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the command with a reason on stderr."""
    typer.echo(reason, err=True)
    raise typer.Exit(status)
