"""``privypurse describe`` and ``check``: an owner's work before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from privypurse.cli.documents import print_json
from privypurse.cli.service import fail
from privypurse.workshop.draft import draft, write_report
from privypurse.workshop.file_check import check as check_file
from privypurse.workshop.table_files import read_table

Source = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, a file of SQLite or DuckDB, or a postgresql:// address."
    ),
]
Table = Annotated[str | None, typer.Option(help="The table or view of a database.")]


def describe(
    source: Source,
    table: Table = None,
    name: Annotated[str | None, typer.Option(help="The name of the dataset.")] = None,
    person: Annotated[str | None, typer.Option(help="The column that says whose a row is.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Where to write what was found in the records.")
    ] = None,
) -> None:
    """Print a draft of the public description of a table, with null where you must decide.

    Nothing is sent, and no cell stands in the draft. What was found stands in a report that only
    you can read.
    """
    is_address = "://" in source
    title = name or table or ("" if is_address else Path(source).name.partition(".")[0])
    with failures():
        with read_table(source, table) as read:
            drafted = draft(read, title, person)
        file = report or Path(f"{title or 'records'}.report.json")
        write_report(file, json.dumps(drafted.report, indent=2, ensure_ascii=False) + "\n")
    print_json(drafted.description)
    typer.echo(f"what was found is in {file}, for you alone; decide every null", err=True)


def check(
    source: Source,
    description: Annotated[Path, typer.Option(help="JSON file of the public description.")],
    table: Table = None,
    nodes: Annotated[
        Path | None, typer.Option(help="The list of a graph's nodes, one per line.")
    ] = None,
    media_type: Annotated[
        str | None, typer.Option(help="Media type, if the file's name does not imply it.")
    ] = None,
) -> None:
    """Check a file against a description by the rules of uploads; nothing is sent."""
    with failures():
        refusal = check_file(source, description, table=table, nodes=nodes, media_type=media_type)
    if refusal.description:
        fail("\n".join(f"{description}: {reason}" for reason in refusal.description), 2)
    if refusal.records:
        fail("\n".join(refusal.records))
    typer.echo(f"{source if '://' not in source else table} fits {description}")


@contextmanager
def failures() -> Iterator[None]:
    """An error ends the command with one message and status 1."""
    try:
        yield
    except (ValueError, ImportError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


COMMANDS: dict[str, Callable[..., None]] = {"describe": describe, "check": check}
