"""Ends a command that has failed."""

from typing import NoReturn

import typer


def fail(reason: str, status: int = 1) -> NoReturn:
    """Print ``reason`` to standard error and end the command with exit status ``status``."""
    typer.echo(reason, err=True)
    raise typer.Exit(status)
