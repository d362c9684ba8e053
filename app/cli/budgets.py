"""``privypurse grant``, ``budgets`` and ``export``: who may learn how much, and who did."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from app.cli.remote import service

if TYPE_CHECKING:
    from privypurse import Entry

COLUMNS = ("at", "kind", "account", "dataset", "analyst", "actor", "epsilon", "delta", "query")


def grant(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    analyst: Annotated[str, typer.Argument(help="Name of the analyst.")],
    epsilon: Annotated[str, typer.Argument(help="What the analyst may learn in total.")],
    delta: Annotated[str, typer.Option(help="The same of δ.")] = "0",
) -> None:
    """Set an analyst's allowance on a dataset; never below what is spent."""
    with service(context) as purse:
        account = purse.grant(dataset, analyst, epsilon=epsilon, delta=delta)
    typer.echo(f"{analyst} on {dataset}: {account.allowance}, remaining {account.remaining}")


def budgets(
    context: typer.Context,
    dataset: Annotated[
        str | None, typer.Argument(help="All accounts of this dataset (owner, auditor).")
    ] = None,
) -> None:
    """One's own accounts, or those of a dataset: dataset, analyst, spent, allowance."""
    with service(context) as purse:
        accounts = purse.budgets() if dataset is None else purse.budgets_of(dataset).accounts
    for one in accounts:
        typer.echo(f"{one.dataset}\t{one.analyst}\tspent {one.spent}\tof {one.allowance}")


def export(
    context: typer.Context,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file; standard output otherwise.")] = None,
) -> None:
    """The ledger as CSV, newest first, as far as one may see it."""
    with service(context) as purse:
        entries = purse.ledger(dataset)
        # Nothing is written, and no file replaced, before the service has said yes.
        first = list(islice(entries, 1))
        with _opened(output) as stream:
            _write(chain(first, entries), stream)


def _write(entries: Iterable[Entry], stream: TextIO) -> None:
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow([*COLUMNS, "seq", "head"])
    for entry in entries:
        amounts = {"epsilon": f"{entry.amount.epsilon:f}", "delta": f"{entry.amount.delta:f}"}
        shown = vars(entry) | amounts | {"at": entry.at.isoformat()}
        lines.writerow([shown[name] for name in (*COLUMNS, "seq", "head")])


COMMANDS: dict[str, Callable[..., None]] = {"grant": grant, "budgets": budgets, "export": export}


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    with output.open("w", encoding="utf-8", newline="") as stream:
        yield stream
