"""What an operator does beside a running service: verify, check, back up, accept, migrate.

Every function opens the database of the settings itself. Raises: OutOfReach when the database or
the store cannot be used at all; Refused when a precondition does not hold. Neither has changed
anything.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.config.settings import Settings
from storage.assurance.backup import DestinationTaken
from storage.assurance.backup import back_up as back_up_database
from storage.assurance.heads import HeadsLog, Published, read_heads
from storage.assurance.rollback import Accepted as Accepted
from storage.assurance.rollback import HeadsTooOld, accept
from storage.assurance.stored_files import Comparison, compare
from storage.assurance.verification import Bad as Bad
from storage.assurance.verification import Verification as Verification
from storage.assurance.verification import check_receipt as check_receipt_in
from storage.assurance.verification import verify as verify_database
from storage.database.database import Database
from storage.database.privileges import grant_service
from storage.errors import StorageError
from storage.files.folders import make_folder
from storage.queries.entry_pages import EntryRow


class OutOfReach(Exception):
    """The database or the store cannot be used."""


class Refused(Exception):
    """A precondition does not hold."""


def verify(settings: Settings, heads: Path | None) -> tuple[Verification, bool]:
    """Recompute the whole ledger, also against the published heads, of the file ``heads``.

    Returns: the outcome, and False where no heads were published yet to compare with.
    """
    with _opened(settings) as database:
        published = _published(settings, heads)
        return verify_database(database, heads=published), published is not None


def check_receipt(settings: Settings, head: bytes) -> tuple[EntryRow, Bad | None] | None:
    """Find the entry with this head and recompute its account's chain; None if there is none."""
    with _opened(settings) as database:
        return check_receipt_in(database, head)


def back_up(settings: Settings, destination: Path) -> None:
    """Copy ledger, published heads and, unless they are in a store, records to a new folder."""
    folder = settings.data.absolute() if settings.store is None else None
    with _opened(settings) as database:
        back_up_database(database, folder, HeadsLog(settings.heads_file()), destination)


def check_store(settings: Settings, names: Callable[[], Mapping[str, float]]) -> Comparison:
    """Compare the files of the store with the folders that the ledger's rows name.

    ``names``: lists the files of the store with their ages. It is called after the rows are read,
    so that a file published in between is not reported as lost.
    """
    with _opened(settings) as database:
        return compare(database, names)


def accept_rollback(settings: Settings, *, heads_lost: bool) -> list[Accepted]:
    """Let a frozen ledger go on, charged at least what its published heads say was charged.

    ``heads_lost``: no later heads exist, so every frozen account is charged to its limit.
    """
    with _opened(settings) as database:
        return accept(database, HeadsLog(settings.heads_file()), heads_lost=heads_lost)


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
    except (DestinationTaken, HeadsTooOld) as error:
        raise Refused(str(error)) from None
    except StorageError as error:
        raise OutOfReach(str(error)) from error
