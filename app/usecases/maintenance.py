"""What an operator does beside a running service: verify, check, back up, accept, migrate.

Every function opens the database of the settings itself. Raises: OutOfReach when the database or
the store cannot be used at all; Refused when a precondition does not hold. Neither has changed
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from accounting.privacy_loss import PrivacyLoss, formatted
from app.config.settings import Settings
from app.contract.times import moment
from storage.assurance.backup import DestinationTaken
from storage.assurance.backup import back_up as back_up_database
from storage.assurance.heads import HeadsLog, Published, read_heads
from storage.assurance.receipts import check_receipt as check_receipt_in
from storage.assurance.rollback import HeadsTooOld, accept
from storage.assurance.stored_files import compare
from storage.assurance.verification import verify as verify_database
from storage.database.database import Database
from storage.database.privileges import grant_service
from storage.errors import StorageError
from storage.files.folders import make_folder


class OutOfReach(Exception):
    """The database or the store cannot be used."""


class Refused(Exception):
    """A precondition does not hold."""


@dataclass(frozen=True)
class VerificationReport:
    """``bad_row`` is the first row that contradicts the rest; None when the ledger is valid.

    ``compared`` is False when no heads were published yet.
    """

    accounts: int
    entries: int
    head: str
    bad_row: str | None
    compared: bool


@dataclass(frozen=True)
class ReceiptReport:
    """The entry of a receipt; ``bad_row`` says why its account's chain does not hold."""

    kind: str
    epsilon: str
    delta: str
    query: str | None
    analyst: str | None
    dataset: str | None
    at: datetime
    account: int
    entry: int
    bad_row: str | None


@dataclass(frozen=True)
class StoreReport:
    """Files that the ledger reads and the store has lost, and how many files nothing names.

    ``unnamed`` is None while accounts are frozen: nothing in the store is swept then.
    """

    lost: tuple[str, ...]
    unnamed: int | None


@dataclass(frozen=True)
class AcceptedAccount:
    """An account that takes charges again, and what was charged to it once more.

    ``dataset`` is None where it ranges over all of them, ``analyst`` where it is a dataset's cap.
    """

    dataset: str | None
    analyst: str | None
    recharged: PrivacyLoss


def verify(settings: Settings, heads: Path | None) -> VerificationReport:
    """Recompute the whole ledger, also against the published heads, of the file ``heads``."""
    with _opened(settings) as database:
        published = _published(settings, heads)
        outcome = verify_database(database, heads=published)
    bad = outcome.first_bad
    return VerificationReport(
        accounts=outcome.accounts,
        entries=outcome.entries,
        head=outcome.head.hex(),
        bad_row=None if bad is None else str(bad),
        compared=published is not None,
    )


def check_receipt(settings: Settings, head: bytes) -> ReceiptReport | None:
    """Find the entry with this head and recompute its account's chain; None if there is none."""
    with _opened(settings) as database:
        receipt = check_receipt_in(database, head)
    if receipt is None:
        return None
    entry, bad = receipt.entry, receipt.first_bad
    return ReceiptReport(
        kind=entry.kind,
        **formatted(entry.amounts),
        query=None if entry.query_id is None else str(entry.query_id),
        analyst=entry.analyst,
        dataset=entry.dataset,
        at=moment(entry.at_us),
        account=entry.account_id,
        entry=entry.seq,
        bad_row=None if bad is None else str(bad),
    )


def back_up(settings: Settings, destination: Path) -> None:
    """Copy ledger, published heads and, unless they are in a store, records to a new folder."""
    folder = settings.data.absolute() if settings.store is None else None
    with _opened(settings) as database:
        try:
            back_up_database(database, folder, HeadsLog(settings.heads_file()), destination)
        except DestinationTaken as error:
            raise Refused(str(error)) from None


def check_store(settings: Settings, names: Callable[[], Mapping[str, float]]) -> StoreReport:
    """Compare the files of the store with the folders that the ledger's rows name.

    ``names``: lists the files of the store with their ages. It is called after the rows are read,
    so that a file published in between is not reported as lost.
    """
    with _opened(settings) as database:
        comparison = compare(database, names)
    return StoreReport(tuple(comparison.lost), comparison.unnamed)


def accept_rollback(settings: Settings, *, heads_lost: bool) -> list[AcceptedAccount]:
    """Let a frozen ledger go on, charged at least what its published heads say was charged.

    ``heads_lost``: no later heads exist, so every frozen account is charged to its limit.
    """
    with _opened(settings) as database:
        try:
            accepted = accept(database, HeadsLog(settings.heads_file()), heads_lost=heads_lost)
        except HeadsTooOld as error:
            raise Refused(str(error)) from None
    return [AcceptedAccount(one.dataset, one.analyst, one.recharged) for one in accepted]


def migrate(settings: Settings, service_role: str | None) -> None:
    """Bring the schema up to date, and grant a PostgreSQL role what serving needs."""
    with _opened(settings, existing=False) as database:
        if service_role is not None:
            database.write(lambda connection: grant_service(connection, service_role))


def make_data_folder(settings: Settings) -> None:
    """Make the data folder, readable by its owner alone, if there is none."""
    try:
        make_folder(settings.data)
    except OSError as error:
        reason = f"the data folder {settings.data} cannot be used: {error.strerror}"
        raise OutOfReach(reason) from error


def _published(settings: Settings, heads: Path | None) -> dict[int, Published] | None:
    try:
        return read_heads(heads or settings.heads_file())
    except FileNotFoundError:
        if heads is not None:
            raise Refused(f"there is no file {heads}") from None
        return None


@contextmanager
def _opened(settings: Settings, *, existing: bool = True) -> Iterator[Database]:
    url = settings.url()
    # A mistyped folder must not become an empty, valid ledger.
    if existing and url.startswith("sqlite:///") and not Path(url[len("sqlite:///") :]).is_file():
        raise OutOfReach("there is no ledger in this data folder")
    try:
        database = Database.open(url, settings.data.absolute())
        try:
            yield database
        finally:
            database.close()
    except StorageError as error:
        raise OutOfReach(str(error)) from error
