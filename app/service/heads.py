"""Compares the ledger with its published heads while the service runs.

The first comparison precedes the first request, so a restored ledger is frozen from the start.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from app.engine.background import Repeated
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.database.database import Database
from storage.errors import UnusableDatabase

log = structlog.get_logger("privypurse.heads")


@contextmanager
def watched(database: Database, heads: HeadsLog, seconds: float) -> Iterator[None]:
    """Compare and publish heads now, every ``seconds``, on every lost connection, and at the end.

    Raises: UnusableDatabase when the file of heads cannot be written.
    """
    publisher = Publisher(database, heads)

    def look() -> bool:
        frozen = publisher.look()
        if frozen:
            log.critical("the ledger went backwards: accounts are frozen", accounts=len(frozen))
        return bool(frozen)

    try:
        if not look() and publisher.any_frozen():
            # A backup is stored with its accounts frozen. After a restore the comparison with the
            # published heads therefore finds no account to freeze, but some are frozen already.
            log.error("accounts are frozen: their charges are refused until accept-rollback")
    except OSError as error:
        raise UnusableDatabase(
            f"cannot write the published heads to {heads.path}: {error.strerror}"
        ) from error
    if heads.damaged:
        log.error("the published heads have damaged lines", lines=len(heads.damaged))
    looking = Repeated("heads", seconds, look)
    publisher.on_disconnect(looking.wake)
    looking.start()
    try:
        yield
    finally:
        looking.close()


def alarmed(heads: HeadsLog, accounts: Sequence[int], at_us: int) -> None:
    """Log that a constraint of the ledger has fired and has frozen ``accounts``.

    Heads are still published, so they show the charges when an operator ends the freeze. ``at_us``
    is the time of the freeze in microseconds.
    """
    log.critical("a constraint of the ledger fired: look at once", accounts=len(accounts))
    if accounts:
        try:
            # A new reader, because the other one belongs to the thread that compares heads.
            HeadsLog(heads.path).mark({at_us})
        except OSError:
            # The accounts are frozen already. Callers in the same batch must still get a reply.
            log.error("the published heads do not know of the freeze")
