"""The operator's commands beside a running service: verify, back up, accept, migrate, a lost key.

Every function opens the database that the settings name. Raises: OutOfReach if the database or
the store cannot be used at all; Refused if a precondition does not hold. Nothing has changed
after either of them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog

from app.config.settings import Settings
from app.telemetry import logs
from storage.assurance.adoption import HeadsExist
from storage.assurance.adoption import adopt as adopt_database
from storage.assurance.backup import DestinationTaken
from storage.assurance.backup import back_up as back_up_database
from storage.assurance.heads import HeadsLog
from storage.assurance.rollback import Accepted as Accepted
from storage.assurance.rollback import HeadsTooOld, accept
from storage.assurance.stored_files import Comparison, compare
from storage.assurance.verification import Bad as Bad
from storage.assurance.verification import Verification as Verification
from storage.assurance.verification import check_receipt as check_receipt_in
from storage.assurance.verification import verify as verify_database
from storage.assurance.verify_arrays import ArraysVerified
from storage.assurance.verify_arrays import verify_arrays as verify_stored_arrays
from storage.database.database import Database
from storage.database.privileges import grant_service
from storage.errors import ManagedElsewhere, StorageError
from storage.files.folders import make_folder
from storage.people.users import Users
from storage.queries.entry_pages import EntryRow
from storage.records.data_folder import Files

log = structlog.get_logger("privypurse.heads")


class OutOfReach(Exception):
    """The database or the store cannot be used."""


class Refused(Exception):
    """A precondition of the command does not hold; the text says which one."""


def verify(settings: Settings, heads: Path | None) -> tuple[Verification, bool]:
    """Recompute the whole ledger, and compare it with the published heads in the file ``heads``.

    Returns: the outcome, and whether there were published heads to compare with.
    """
    with _opened(settings) as database:
        log = _heads(settings) if heads is None else HeadsLog(heads)
        if heads is not None and not heads.is_file():
            raise Refused(f"there is no file {heads}")
        log.refresh()
        return verify_database(database, heads=log.present, streams=log.streams), log.exist


def verify_arrays(settings: Settings) -> ArraysVerified | None:
    """Compare prepared arrays with their digests; None if they are in an object store."""
    if settings.store is not None:
        return None
    with _opened(settings) as database:
        return verify_stored_arrays(database, Files(settings.data.absolute()))


def check_receipt(settings: Settings, head: bytes) -> tuple[EntryRow, Bad | None] | None:
    """The entry with this head, and the first bad row of its chain; None if there is no entry."""
    with _opened(settings) as database:
        return check_receipt_in(database, head)


def back_up(settings: Settings, destination: Path) -> None:
    """Copy ledger, published heads and records (but no object store) to a new folder."""
    folder = settings.data.absolute() if settings.store is None else None
    with _opened(settings) as database:
        back_up_database(database, folder, _heads(settings), destination)


def check_store(settings: Settings, names: Callable[[], Mapping[str, float]]) -> Comparison:
    """Compare the files of the object store with the folders that rows of the database name.

    ``names``: lists the files of the store with their ages. It is called after the rows are read,
    so that a file published in between is not reported as lost.
    """
    with _opened(settings) as database:
        return compare(database, names)


def accept_rollback(settings: Settings, *, heads_lost: bool) -> list[Accepted]:
    """Unfreeze the ledger after a rollback, and charge at least what published heads show.

    ``heads_lost``: no later heads exist, so every frozen account is charged up to its limit.
    """
    with _opened(settings) as database:
        return accept(database, _heads(settings), heads_lost=heads_lost)


def adopt_heads(settings: Settings) -> int:
    """Publish the heads of the ledger as it is; returns the number of accounts.

    Danger: charges that the database has lost are given back. The ledger must at least be valid.
    """
    with _opened(settings) as database:
        bad = verify_database(database).first_bad
        if bad is not None:
            raise Refused(f"the ledger is not valid: {bad}")
        accounts = adopt_database(database, _heads(settings))
    logs.configure()
    log.critical("the published heads were lost: the ledger was adopted as it is")
    return accounts


def migrate(settings: Settings, service_role: str | None) -> None:
    """Bring the schema up to date, and give the PostgreSQL ``service_role`` its rights."""
    with _opened(settings, existing=False) as database:
        if service_role is not None:
            database.write(lambda connection: grant_service(connection, service_role))


def issue_admin_key(settings: Settings, name: str, file: Path) -> None:
    """Write a new key of the enabled admin ``name`` to a new file, where no admin has one any more.

    The audit trail shows it as a key that this admin issued. No key is issued if the file cannot
    be written.
    """
    if file.exists():
        raise Refused(f"{file} exists already")
    with _opened(settings) as database:
        users = Users(database)
        admin = users.find(name)
        if admin is None or admin.disabled or "admin" not in admin.roles:
            raise Refused(f"{name} is no enabled admin")
        try:
            users.issue_key(name, actor=admin, key_file=file)
        except OSError as error:
            raise Refused(f"{file} cannot be written: {error.strerror}") from error


def make_data_folder(settings: Settings) -> None:
    """Make the data folder if there is none. Only the user of this process can read it."""
    try:
        make_folder(settings.data)
    except OSError as error:
        reason = f"the data folder {settings.data} cannot be used: {error.strerror}"
        raise OutOfReach(reason) from error


def _heads(settings: Settings) -> HeadsLog:
    return HeadsLog(settings.heads_file(), settings.heads_copy_file())


@contextmanager
def _opened(settings: Settings, *, existing: bool = True) -> Iterator[Database]:
    url = settings.url()
    # The database would create a missing file. A mistyped folder would then look like an empty,
    # valid ledger.
    if existing and url.startswith("sqlite:///") and not Path(url[len("sqlite:///") :]).is_file():
        raise OutOfReach("there is no ledger in this data folder")
    try:
        database = Database.open(url, settings.data.absolute())
        try:
            yield database
        finally:
            database.close()
    except (DestinationTaken, HeadsExist, HeadsTooOld, ManagedElsewhere) as error:
        raise Refused(str(error)) from None
    except StorageError as error:
        raise OutOfReach(str(error)) from error
    except OSError as error:
        place = error.filename or settings.data
        raise OutOfReach(f"{place} cannot be used: {error.strerror}") from error
