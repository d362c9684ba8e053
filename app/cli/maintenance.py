"""What an operator does at the command line: verify, check, back up, accept a rollback, migrate.

Each works beside a running service. The exit status is 0 when all is well, 1 when the ledger, a
receipt, a store or a precondition is not, 2 when the database or the store cannot be used at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from accounting.privacy_loss import PrivacyLoss, format_units
from app.config.settings import Settings
from app.contract.times import moment
from storage.assurance.backup import DestinationTaken, back_up
from storage.assurance.heads import HeadsLog, Published, read_heads
from storage.assurance.receipts import check_receipt
from storage.assurance.rollback import Accepted, HeadsTooOld
from storage.assurance.rollback import accept as accept_heads
from storage.assurance.verification import verify as verify_ledger
from storage.database.database import Database
from storage.database.privileges import grant_service
from storage.errors import StorageError, UnusableDatabase

DataOption = Annotated[Path | None, typer.Option(help="Data folder; PURSE_DATA otherwise.")]
_HASH = re.compile("[0-9a-f]{64}")


def verify(
    data: DataOption = None,
    heads: Annotated[Path | None, typer.Option(help="File of published heads.")] = None,
) -> None:
    """Recompute the whole ledger, also against its published heads; 1 when a row is bad."""
    settings = _settings(data)
    with _opened(settings) as database:
        found = verify_ledger(database, heads=_published(settings, heads))
    typer.echo(f"{found.accounts} accounts, {found.entries} entries, head {found.head.hex()}")
    if found.first_bad is not None:
        _fail(f"NOT VALID: {found.first_bad}")
    typer.echo("valid")


def receipt(
    hash: Annotated[str, typer.Argument(help="The receipt of a reply, 64 hexadecimal digits.")],
    data: DataOption = None,
) -> None:
    """Find the entry a receipt stands for and recompute its account's chain."""
    if not _HASH.fullmatch(hash.lower()):
        _fail("a receipt has 64 hexadecimal digits")
    with _opened(_settings(data)) as database:
        found = check_receipt(database, bytes.fromhex(hash))
    if found is None:
        _fail("no entry has this head: the receipt is not of this ledger, or the ledger forgot it")
    entry = found.entry
    typer.echo(
        f"{entry.kind} of epsilon {format_units(entry.epsilon_nano, 9)}, "
        f"delta {format_units(entry.delta_atto, 18)}, query {entry.query_id}\n"
        f"analyst {entry.analyst}, dataset {entry.dataset}, {moment(entry.at_us).isoformat()}, "
        f"account {entry.account_id}, entry {entry.seq}"
    )
    if found.first_bad is not None:
        _fail(f"NOT VALID: {found.first_bad}")
    typer.echo("valid")


def backup(
    destination: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    data: DataOption = None,
) -> None:
    """Copy ledger, published heads and records while the service goes on (SQLite)."""
    settings = _settings(data)
    log = HeadsLog(settings.heads_file())
    folder = settings.data.absolute() if settings.store is None else None
    with _opened(settings) as database:
        try:
            back_up(database, folder, log, destination.absolute())
        except DestinationTaken as error:
            _fail(str(error))
    typer.echo(f"backed up to {destination}; a ledger restored from it starts frozen")
    if folder is None:
        typer.echo(f"the prepared records are not in it: they are in {settings.store}")


def check_store(data: DataOption = None) -> None:
    """Compare the store of records with what the ledger reads; 1 when the store has lost any."""
    # Only here: they load the readers of records.
    from app.service.store import named_store
    from storage.assurance.stored_files import compare

    settings = _settings(data)
    if settings.store is None:
        _fail("PURSE_STORE names no store", 2)
    with _opened(settings) as database:
        found = compare(database, lambda: named_store(settings).names(""))
    for name in found.lost:
        typer.echo(f"{name} is not in the store")
    if found.unnamed is None:
        typer.echo("accounts are frozen: nothing in the store is swept")
    else:
        typer.echo(f"{found.unnamed} files are of nothing in the ledger, and will be removed")
    if found.lost:
        _fail("NOT WHOLE: upload these again, or put the bucket back")
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
    settings = _settings(data)
    with _opened(settings) as database:
        try:
            done = accept_heads(database, HeadsLog(settings.heads_file()), heads_lost=heads_lost)
        except HeadsTooOld as error:
            _fail(
                f"{error}: put the latest heads.log in place, or say --heads-lost, after which "
                "none of the frozen datasets answers any more"
            )
    for account in done:
        if account.recharged != PrivacyLoss(0):
            more = account.recharged.as_dict()
            typer.echo(
                f"{_named(account)}: charged epsilon {more['epsilon']}, delta {more['delta']} again"
            )
    if not done:
        typer.echo("nothing is frozen")
    elif heads_lost:
        typer.echo(
            f"{len(done)} accounts are charged to their limits: a dataset at its cap answers no "
            "more, and its records have to be registered anew, under another name"
        )
    else:
        typer.echo(f"{len(done)} accounts take charges again")


def migrate(
    data: DataOption = None,
    service_role: Annotated[
        str | None, typer.Option(help="PostgreSQL role that will serve: it is granted its rights.")
    ] = None,
) -> None:
    """Bring the schema up to date, as the role that owns it."""
    with _opened(_settings(data), existing=False) as database:
        if service_role is not None:
            database.write(lambda connection: grant_service(connection, service_role))
    typer.echo("the schema is up to date")


COMMANDS = (verify, receipt, backup, check_store, accept_rollback, migrate)


def _named(account: Accepted) -> str:
    if account.analyst is None:
        return f"cap of {account.dataset}"
    if account.dataset is None:
        return f"{account.analyst}, over all datasets"
    return f"{account.analyst}, dataset {account.dataset}"


def _settings(data: Path | None) -> Settings:
    settings = Settings()
    return settings if data is None else settings.model_copy(update={"data": data})


def _published(settings: Settings, heads: Path | None) -> dict[int, Published] | None:
    path = heads or settings.heads_file()
    try:
        return read_heads(path)
    except FileNotFoundError:
        if heads is not None:
            _fail(f"there is no file {heads}")
        typer.echo("no published heads to compare with", err=True)
        return None


@contextmanager
def _opened(settings: Settings, *, existing: bool = True) -> Iterator[Database]:
    url = settings.url()
    # A mistyped folder must not become an empty, valid ledger.
    if existing and url.startswith("sqlite:///") and not Path(url[len("sqlite:///") :]).is_file():
        _fail("there is no ledger in this data folder", 2)
    try:
        database = Database.open(url, settings.data.absolute())
    except UnusableDatabase as error:
        _fail(str(error), 2)
    try:
        yield database
    except StorageError as error:
        _fail(str(error), 2)
    finally:
        database.close()


def _fail(reason: str, status: int = 1) -> NoReturn:
    typer.echo(reason, err=True)
    raise typer.Exit(status)
