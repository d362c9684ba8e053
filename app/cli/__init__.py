"""The command line: ``privypurse``.

What works on a data folder (``serve``, ``verify``, ``backup``, …) needs no running service;
everything else speaks to one over HTTP by the client package, in the name of one of its users.
"""

from __future__ import annotations

import sys

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from app.cli import asking, budgets, cluster, datasets, serving, users
from app.cli.maintenance import COMMANDS
from app.cli.remote import DEFAULT_URL, Caller, KeyFileOption, KeyOption, UrlOption

LOCAL, REMOTE = "On this machine", "By a service, over HTTP"

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@cli.callback()
def privypurse(
    context: typer.Context,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Private queries over graphs and tables, under a ledger that never overspends."""
    context.obj = Caller(url, key, key_file)


for command in (*serving.COMMANDS, *cluster.COMMANDS, *COMMANDS):
    cli.command(rich_help_panel=LOCAL)(command)
for group, commands, about in (
    ("users", users.COMMANDS, "Users, roles and keys (admin)."),
    ("datasets", datasets.COMMANDS, "Datasets and their records (owner)."),
):
    sub = typer.Typer(help=about, no_args_is_help=True)
    for name, remote in commands.items():
        sub.command(name)(remote)
    cli.add_typer(sub, name=group, rich_help_panel=REMOTE)
for name, remote in (budgets.COMMANDS | asking.COMMANDS).items():
    cli.command(name, rich_help_panel=REMOTE)(remote)


def main() -> None:
    """The entry point of the installed command."""
    try:
        cli(prog_name="privypurse")  # leaves by SystemExit
    except SettingsError as error:
        typer.echo(f"settings: {error}", err=True)
    except ValidationError as error:
        # Settings alone are read this late. The name says where; the value may be a secret.
        for wrong in error.errors(include_url=False, include_input=False, include_context=False):
            where = "".join(map(str, wrong["loc"][:1])).upper().removeprefix("PURSE_")
            message = wrong["msg"].removeprefix("Value error, ")
            typer.echo(f"PURSE_{where or '…'}: {message}", err=True)
    sys.exit(2)
