"""The command ``privypurse``: sends requests to a running service with the key of one user.

The rest of the client does not import this package, so only the command requires typer.
"""

from __future__ import annotations

import typer

from privypurse.cli import (
    agents,
    budget_requests,
    budgets,
    certificates,
    datasets,
    login,
    queries,
    sources,
    users,
    workshop,
)
from privypurse.cli.service import DEFAULT_URL, Credentials, KeyFileOption, KeyOption, UrlOption

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@cli.callback()
def privypurse(
    context: typer.Context,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Private queries over graphs and tables, answered by a PrivyPurse service."""
    context.obj = Credentials(url, key, key_file)


for group, commands, summary in (
    ("users", users.COMMANDS, "Users, roles and keys (admin)."),
    (
        "datasets",
        {**datasets.COMMANDS, "certificate": certificates.dataset_certificate},
        "Datasets and their records (owner).",
    ),
    ("requests", budget_requests.COMMANDS, "Requests for budget (analyst, owner)."),
    ("sources", sources.COMMANDS, "Sources from which records are pulled (owner)."),
):
    subcommands = typer.Typer(help=summary, no_args_is_help=True)
    for name, command in commands.items():
        subcommands.command(name)(command)
    cli.add_typer(subcommands, name=group)
ALONE = (
    queries.COMMANDS | certificates.COMMANDS | workshop.COMMANDS | agents.COMMANDS | login.COMMANDS
)
for name, command in (budgets.COMMANDS | ALONE).items():
    cli.command(name)(command)


def main() -> None:
    """The entry point of the installed command."""
    cli(prog_name="privypurse")
