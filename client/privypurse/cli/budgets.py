"""``privypurse grant``, ``budgets`` and ``export``: allowances, accounts and the ledger as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from privypurse.accounts import Account, Entry
from privypurse.cli.service import service

COLUMNS = (
    "at",
    "kind",
    "account",
    "dataset",
    "analyst",
    "actor",
    "epsilon",
    "delta",
    "rho",
    "query",
    "seq",
    "head",
)
GAUSSIAN = Annotated[
    bool, typer.Option(help="Allow Gaussian noise; from then on only ρ admits charges.")
]
LARGE = Annotated[
    bool,
    typer.Option(help="Take a composition delta above 0.0001: so often may the promise fail."),
]


def grant(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    analyst: Annotated[str, typer.Argument(help="Name of the analyst.")],
    epsilon: Annotated[str, typer.Argument(help="ε that the analyst may spend in total.")],
    delta: Annotated[str, typer.Option(help="δ that the analyst may spend in total.")] = "0",
    composition_delta: Annotated[
        str, typer.Option(help="δ on top, for which charges are counted in ρ as well.")
    ] = "0",
    gaussian: GAUSSIAN = False,
    allow_large_delta: LARGE = False,
    until: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The day (UTC) on which the allowance ends."),
    ] = None,
    endless: Annotated[
        bool, typer.Option("--endless", help="Take away the end that the allowance has.")
    ] = False,
) -> None:
    """Set an analyst's allowance on a dataset; it cannot be less than what is spent."""
    if endless and until is not None:
        raise typer.BadParameter("give --until or --endless, not both")
    end: datetime | Literal["as it is"] | None = None if endless else "as it is"
    if until is not None:
        end = until.replace(tzinfo=UTC)
    with service(context) as purse:
        account = purse.grant(
            dataset,
            analyst,
            epsilon=epsilon,
            delta=delta,
            composition_delta=composition_delta,
            gaussian=gaussian,
            until=end,
            allow_large_delta=allow_large_delta,
        )
    typer.echo(
        f"{analyst} on {dataset}: {account.allowance}, remaining {account.remaining}{_end(account)}"
    )


def cap(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    composition_delta: Annotated[
        str, typer.Argument(help="δ on top, for which charges are counted in ρ as well; 0: none.")
    ],
    gaussian: GAUSSIAN = False,
    allow_large_delta: LARGE = False,
) -> None:
    """Set what lets charges fit a dataset's cap by ρ as well; its ε and δ never change."""
    with service(context) as purse:
        balance = purse.promise_cap(
            dataset, composition_delta, gaussian=gaussian, allow_large_delta=allow_large_delta
        )
    typer.echo(f"cap of {dataset}: {balance.allowance}, remaining {balance.remaining}")


def budgets(
    context: typer.Context,
    dataset: Annotated[
        str | None, typer.Argument(help="Show all accounts of this dataset (owner, auditor).")
    ] = None,
) -> None:
    """List your own accounts, or those of a dataset: dataset, analyst, spent, allowance.

    A limit over all datasets together, and one of the key, follow your own accounts.
    Accounts that count in ρ also say what still fits: the largest ε of a single query, and how many
    queries of each kind at ε = 0.1.
    """
    with service(context) as purse:
        accounts = purse.budgets() if dataset is None else purse.budgets_of(dataset).accounts
        limits = {}
        if dataset is None:
            limits = {"all datasets": purse.overall_budget(), "this key": purse.key_budget()}
    for account in accounts:
        line = (
            account.dataset,
            account.analyst,
            f"spent {account.spent}",
            f"of {account.allowance}",
            *_fits(account),
        )
        typer.echo("\t".join(line) + _end(account))
    for name, limit in limits.items():
        if limit is not None:
            typer.echo(f"{name}\t\tspent {limit.spent}\tof {limit.allowance}")


def _fits(account: Account) -> Iterator[str]:
    """The charges that still fit an account, as fields of a line.

    Only an account that counts in ρ has them: what remains there does not follow from the ε spent.
    """
    if account.allowance.rho is not None:
        yield f"largest ε {account.largest_epsilon:f}"
    if account.fits_more:
        numbers = ", ".join(f"{kind} {number}" for kind, number in account.fits_more.items())
        yield f"at ε = 0.1 fit {numbers}"


def _end(account: Account) -> str:
    return "" if account.until is None else f", until {account.until.isoformat()}"


def notices(context: typer.Context) -> None:
    """List what concerns you now: low budgets, requests, new versions and others."""
    with service(context) as purse:
        for notice in purse.notices():
            typer.echo(f"{notice.at.isoformat()}\t{notice.kind}\t{notice.text}")


def export(
    context: typer.Context,
    dataset: Annotated[str | None, typer.Option(help="Export this dataset alone.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file; standard output otherwise.")] = None,
) -> None:
    """Write the ledger as CSV, newest first: the accounts that you may see."""
    with service(context) as purse:
        entries = purse.ledger(dataset)
        # The first page is fetched before the file is opened: a refusal must not empty an existing
        # file.
        first = list(islice(entries, 1))
        with _stream(output) as stream:
            _write(chain(first, entries), stream)


def _write(entries: Iterable[Entry], stream: TextIO) -> None:
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(COLUMNS)
    for entry in entries:
        # Gaussian noise has no finite ε, so the field of ε is empty.
        epsilon = f"{entry.amount.epsilon:f}" if entry.amount.epsilon.is_finite() else ""
        rho = "" if entry.amount.rho is None else f"{entry.amount.rho:f}"
        amounts = {"epsilon": epsilon, "delta": f"{entry.amount.delta:f}", "rho": rho}
        fields = vars(entry) | amounts | {"at": entry.at.isoformat()}
        lines.writerow([fields[name] for name in COLUMNS])


COMMANDS: dict[str, Callable[..., None]] = {
    "grant": grant,
    "cap": cap,
    "budgets": budgets,
    "notices": notices,
    "export": export,
}


@contextmanager
def _stream(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    with output.open("w", encoding="utf-8", newline="") as stream:
        yield stream
