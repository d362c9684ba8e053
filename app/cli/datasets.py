"""``privypurse datasets``: describe, send records, look."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from app.cli.remote import service

Name = Annotated[str, typer.Argument(help="Name of the dataset.")]
File = Annotated[Path, typer.Argument(help="A file on this machine.")]


def show_all(context: typer.Context) -> None:
    """The datasets one may see: name, kind, status, version."""
    with service(context) as purse:
        for dataset in purse.datasets():
            typer.echo(f"{dataset.name}\t{dataset.kind}\t{dataset.status}\t{dataset.version}")


def show(context: typer.Context, name: Name) -> None:
    """The public description of a dataset, as JSON."""
    with service(context) as purse:
        typer.echo(json.dumps(purse.dataset(name).description, indent=2, ensure_ascii=False))


def register(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON file of the public description.")],
) -> None:
    """Register a dataset; its description and its cap are fixed from then on."""
    with service(context) as purse:
        typer.echo(f"registered {purse.register(json.loads(file.read_text('utf-8'))).name}")


def nodes(context: typer.Context, name: Name, file: File) -> None:
    """Send the names of a graph's nodes, one a line, before the first records."""
    with service(context) as purse:
        typer.echo(f"{purse.upload_nodes(name, file)} nodes")


def upload(
    context: typer.Context,
    name: Name,
    file: File,
    media_type: Annotated[str | None, typer.Option(help="When the file's name does not tell.")] = (
        None
    ),
) -> None:
    """Send records and wait until they can be queried."""
    with service(context) as purse:
        dataset = purse.upload(name, file, media_type=media_type)
    typer.echo(f"{dataset.name} is {dataset.status}, version {dataset.version}")


def withdraw(context: typer.Context, name: Name) -> None:
    """No more queries of a dataset; the ledger and stored answers stay."""
    with service(context) as purse:
        purse.withdraw(name)


COMMANDS: dict[str, Callable[..., None]] = {
    "list": show_all,
    "show": show,
    "register": register,
    "nodes": nodes,
    "upload": upload,
    "withdraw": withdraw,
}
