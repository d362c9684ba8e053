"""``privypurse datasets``: register, upload, list and withdraw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from privypurse.cli.documents import print_json, read_object
from privypurse.cli.service import service
from privypurse.workshop.table_files import as_upload

Name = Annotated[str, typer.Argument(help="Name of the dataset.")]
File = Annotated[Path, typer.Argument(help="A file on this machine.")]


def show_all(context: typer.Context) -> None:
    """List the datasets that you may see: name, kind, status, version."""
    with service(context) as purse:
        for dataset in purse.datasets():
            typer.echo(f"{dataset.name}\t{dataset.kind}\t{dataset.status}\t{dataset.version}")


def show(context: typer.Context, name: Name) -> None:
    """Print the public description of a dataset as JSON."""
    with service(context) as purse:
        print_json(purse.dataset(name).description)


def mock(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(help="Where to write: a .csv or .parquet file.")],
    rows: Annotated[int, typer.Option(min=1, help="The most records.")] = 100,
) -> None:
    """Write made-up records, drawn from the public description alone."""
    with service(context) as purse:
        form: Literal["csv", "parquet"] = "parquet" if file.suffix == ".parquet" else "csv"
        file.write_bytes(purse.mock(name, rows, form))


def register(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="JSON file of the public description; - for standard input.")
    ],
) -> None:
    """Register a dataset; its description and its cap are fixed with the first grant."""
    description = read_object(file)
    with service(context) as purse:
        dataset = purse.register(description)
    typer.echo(f"registered {dataset.name}")


def replace(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="JSON file of the new description; - for standard input.")
    ],
) -> None:
    """Replace a description and its cap.

    Allowed only if no budget was ever granted and no version of the records is published.
    """
    description = read_object(file)
    with service(context) as purse:
        dataset = purse.replace_description(description)
    typer.echo(f"replaced the description of {dataset.name}")


def nodes(context: typer.Context, name: Name, file: File) -> None:
    """Send the names of a graph's nodes, one per line, before the first records."""
    with service(context) as purse:
        typer.echo(f"{purse.upload_nodes(name, file)} nodes")


def upload(
    context: typer.Context,
    name: Name,
    file: Annotated[
        str, typer.Argument(help="A file on this machine, or a postgresql:// address.")
    ],
    media_type: Annotated[
        str | None, typer.Option(help="Media type, if the file's name does not imply it.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table or view of a database.")] = None,
) -> None:
    """Send records and wait until they can be queried."""
    with service(context) as purse, as_upload(file, table) as records:
        dataset = purse.upload(name, records, media_type=media_type)
    typer.echo(f"{dataset.name} is {dataset.status}, version {dataset.version}")


def withdraw(context: typer.Context, name: Name) -> None:
    """End all queries of a dataset; the ledger and stored answers stay."""
    with service(context) as purse:
        purse.withdraw(name)


COMMANDS: dict[str, Callable[..., None]] = {
    "list": show_all,
    "show": show,
    "mock": mock,
    "register": register,
    "replace": replace,
    "nodes": nodes,
    "upload": upload,
    "withdraw": withdraw,
}
