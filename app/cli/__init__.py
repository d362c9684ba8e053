"""The commands on a data folder of this machine: ``serve``, ``verify``, ``backup``, ….

They need no running service. The package ``privypurse`` has the commands that call a service.
"""

import os
import sys

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from app.cli import cluster, serving
from app.cli.maintenance import COMMANDS

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Commands that speak to a running service: python -m privypurse.cli --help",
)


@cli.callback()
def service() -> None:
    """Serve private queries over graphs and tables, and maintain the service's data."""


for command in (*serving.COMMANDS, *cluster.COMMANDS, *COMMANDS):
    cli.command()(command)


def main() -> None:
    """The entry point of ``python -m app.cli``."""
    try:
        # ``cli`` ends the process by SystemExit. The lines below run only after an error. ``./run``
        # calls this module by its own name, so help and errors name the command that was typed.
        cli(prog_name=os.environ.get("PRIVYPURSE_COMMAND"))
    except SettingsError as error:
        typer.echo(f"settings: {error}", err=True)
    except ValidationError as error:
        # Only settings are validated here. A refused value may be a secret, so only the name of its
        # setting is printed.
        for wrong in error.errors(include_url=False, include_input=False, include_context=False):
            where = "".join(map(str, wrong["loc"][:1])).upper().removeprefix("PURSE_")
            message = wrong["msg"].removeprefix("Value error, ")
            typer.echo(f"PURSE_{where or '…'}: {message}", err=True)
    sys.exit(2)
