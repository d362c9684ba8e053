"""The end of a command that cannot do what it was called for."""

from typing import NoReturn

import typer


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the command with a reason on stderr."""
    typer.echo(reason, err=True)
    raise typer.Exit(status)
