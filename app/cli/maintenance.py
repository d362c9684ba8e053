"""Maintenance commands: verify, check, back up, accept a rollback, replace a lost key, migrate.

Each works beside a running service. The exit status is 0 on success, and 1 for an invalid ledger,
receipt or store or an unmet precondition. It is 2 if the database or the store is unusable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from accounting.privacy_loss import PrivacyLoss
from app.cli.failures import fail
from app.config.settings import Settings
from app.contract.ledger import EntryOut
from app.usecases import maintenance
from app.usecases.maintenance import Accepted, Bad, OutOfReach, Refused

DataOption = Annotated[Path | None, typer.Option(help="Data folder; PURSE_DATA otherwise.")]
_HASH = re.compile("[0-9a-f]{64}")


def verify(
    data: DataOption = None,
    heads: Annotated[Path | None, typer.Option(help="File of published heads.")] = None,
    arrays: Annotated[
        bool, typer.Option(help="Also compare prepared arrays with their digests.")
    ] = False,
) -> None:
    """Recompute the whole ledger, also against its published heads; 1 when a row is bad."""
    with failures():
        outcome, compared = maintenance.verify(_settings(data), heads)
    if not compared:
        typer.echo("no published heads to compare with", err=True)
    accounts, entries, head = outcome.extent
    typer.echo(f"{accounts} accounts, {entries} entries, head {head.hex()}")
    bad = outcome.first_bad
    if bad is None and arrays:
        bad = _verify_arrays(_settings(data))
    _say_validity(bad)


def _verify_arrays(settings: Settings) -> Bad | None:
    with failures():
        result = maintenance.verify_arrays(settings)
    if result is None:
        fail(f"prepared arrays are in {settings.store}: services compare them as they fetch them")
    rate = result.bytes / max(result.seconds, 1e-6)
    typer.echo(
        f"{result.versions} versions of prepared arrays, {result.bytes} bytes, "
        f"{rate:.0f} bytes per second"
    )
    if result.unknown:
        typer.echo(f"{result.unknown} versions of earlier releases have no digests yet", err=True)
    return result.first_bad


def receipt(
    hash: Annotated[str, typer.Argument(help="The receipt of a reply, 64 hexadecimal digits.")],
    data: DataOption = None,
) -> None:
    """Find the entry a receipt stands for and recompute its account's chain."""
    if not _HASH.fullmatch(hash.lower()):
        fail("a receipt has 64 hexadecimal digits")
    with failures():
        outcome = maintenance.check_receipt(_settings(data), bytes.fromhex(hash))
    if outcome is None:
        fail("no entry has this head: the receipt is not of this ledger, or the ledger forgot it")
    row, bad = outcome
    entry = EntryOut.model_validate(row)
    typer.echo(
        f"{entry.kind} of epsilon {entry.epsilon}, delta {entry.delta}, query {entry.query}\n"
        f"analyst {entry.analyst}, dataset {entry.dataset}, {entry.at.isoformat()}, "
        f"account {row.account_id}, entry {entry.seq}"
    )
    _say_validity(bad)


def backup(
    destination: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    data: DataOption = None,
) -> None:
    """Copy ledger, published heads and records while the service goes on (SQLite)."""
    settings = _settings(data)
    with failures():
        maintenance.back_up(settings, destination.absolute())
    typer.echo(f"backed up to {destination}; a ledger restored from it starts frozen")
    if settings.store is not None:
        typer.echo(f"the prepared records are not in it: they are in {settings.store}")


def check_store(data: DataOption = None) -> None:
    """Compare the store of records with what the ledger reads; 1 when the store has lost any."""
    # Imported here, because it loads the library of the object store, which other commands do not
    # need.
    from app.service.store import named_store

    settings = _settings(data)
    if settings.store is None:
        fail("PURSE_STORE names no store", 2)
    with failures():
        report = maintenance.check_store(settings, lambda: named_store(settings).names(""))
    for name in report.lost:
        typer.echo(f"{name} is not in the store")
    if report.unnamed is None:
        typer.echo("accounts are frozen: nothing in the store is swept")
    else:
        typer.echo(f"{report.unnamed} files are of nothing in the ledger, and will be removed")
    if report.lost:
        fail("the store has lost files: upload these again, or put the bucket back")
    typer.echo("whole")


def accept_rollback(
    data: DataOption = None,
    heads_lost: Annotated[
        bool,
        typer.Option(
            "--heads-lost",
            help="No later heads exist: charge accounts to their limits, and datasets to their "
            "caps, after which these answer no more.",
        ),
    ] = False,
) -> None:
    """Let a frozen ledger go on, charged at least what its published heads say was charged."""
    with failures(
        "put the latest heads.log in place, or say --heads-lost, after which none of the frozen "
        "datasets answers any more"
    ):
        accounts = maintenance.accept_rollback(_settings(data), heads_lost=heads_lost)
    for account in accounts:
        if account.recharged != PrivacyLoss(0):
            more = account.recharged.as_dict()
            typer.echo(
                f"{_named(account)}: charged epsilon {more['epsilon']}, delta {more['delta']} again"
            )
    if not accounts:
        typer.echo("nothing is frozen")
    elif heads_lost:
        typer.echo(
            f"{len(accounts)} accounts are charged to their limits: a dataset at its cap answers "
            "no more, and its records have to be registered anew, under another name"
        )
    else:
        typer.echo(f"{len(accounts)} accounts take charges again")


def adopt_heads(data: DataOption = None) -> None:
    """Publish the heads of the ledger as it is, where all published heads are lost.

    Danger: if the database is older than the last charge, this gives the later charges back.
    """
    with failures():
        accounts = maintenance.adopt_heads(_settings(data))
    typer.echo(f"the heads of {accounts} accounts are adopted; nothing is charged")


def admin_key(
    name: Annotated[str, typer.Argument(help="The name of an enabled admin.")],
    file: Annotated[Path, typer.Argument(help="A new file, which will hold the key.")],
    data: DataOption = None,
) -> None:
    """Issue a key to an admin, where no admin has a key any more."""
    with failures():
        maintenance.issue_admin_key(_settings(data), name, file.absolute())
    typer.echo(f"{file} holds a new key of {name}")


def migrate(
    data: DataOption = None,
    service_role: Annotated[
        str | None, typer.Option(help="PostgreSQL role that will serve: it is granted its rights.")
    ] = None,
) -> None:
    """Bring the schema up to date, as the role that owns it."""
    with failures():
        maintenance.migrate(_settings(data), service_role)
    typer.echo("the schema is up to date")


COMMANDS = (
    *(verify, receipt, backup, check_store),
    *(accept_rollback, adopt_heads, admin_key, migrate),
)


def _say_validity(bad: Bad | None) -> None:
    if bad is not None:
        fail(f"the ledger is not valid: {bad}")
    typer.echo("valid")


def _named(account: Accepted) -> str:
    if account.analyst is None:
        return f"cap of {account.dataset}"
    if account.key_id:
        return f"{account.analyst}, key {account.key_id}"
    if account.dataset is None:
        return f"{account.analyst}, over all datasets"
    return f"{account.analyst}, dataset {account.dataset}"


def _settings(data: Path | None) -> Settings:
    settings = Settings()
    return settings if data is None else settings.model_copy(update={"data": data})


@contextmanager
def failures(remedy: str = "") -> Iterator[None]:
    """Exit with status 2 for an unusable database, and with 1 for an unmet precondition."""
    try:
        yield
    except OutOfReach as error:
        fail(str(error), 2)
    except Refused as error:
        fail(f"{error}: {remedy}" if remedy else str(error))
