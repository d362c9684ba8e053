"""``privypurse sources``: attach a table of a source to a dataset, and pull it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from privypurse.cli.service import service

Dataset = Annotated[str, typer.Argument(help="Name of the dataset.")]


def show_all(context: typer.Context) -> None:
    """List the sources that are open to you: name, kind, table."""
    with service(context) as purse:
        for source in purse.sources():
            if source.tables is None:
                typer.echo(f"{source.name}\t{source.kind}\tcannot be listed now")
            for table in source.tables or ():
                typer.echo(f"{source.name}\t{source.kind}\t{table}")


def attach(
    context: typer.Context,
    name: Dataset,
    source: Annotated[str, typer.Argument(help="Name of the source.")],
    table: Annotated[str, typer.Argument(help="A table of its list.")],
) -> None:
    """Set the source and the table from which a dataset's records are pulled."""
    with service(context) as purse:
        purse.attach_source(name, source, table)


def show(context: typer.Context, name: Dataset) -> None:
    """Print the source of a dataset, and its table."""
    with service(context) as purse:
        typer.echo("\t".join(purse.source_of(name)))


def detach(context: typer.Context, name: Dataset) -> None:
    """Remove the source of a dataset; its records stay."""
    with service(context) as purse:
        purse.detach_source(name)


def pull(context: typer.Context, name: Dataset) -> None:
    """Upload the table of a dataset's source, and wait until it can be queried."""
    with service(context) as purse:
        dataset = purse.pull(name)
    typer.echo(f"{dataset.name} is {dataset.status}, version {dataset.version}")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": show_all,
    "attach": attach,
    "show": show,
    "detach": detach,
    "pull": pull,
}
