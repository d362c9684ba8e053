"""Compares the ledger with its published heads while the service runs.

The first comparison precedes the first request, so a restored ledger is frozen from the start.
"""

import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import structlog

from app.config.settings import Settings
from app.engine.background import Repeated
from storage.assurance.adoption import adopt_once
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.database.database import Database
from storage.errors import UnusableDatabase

log = structlog.get_logger("privypurse.heads")


def heads_of(settings: Settings) -> HeadsLog:
    """A reader and writer of the published heads; each thread needs its own."""
    return HeadsLog(settings.heads_file(), settings.heads_copy_file())


@contextmanager
def watched(
    database: Database, heads: HeadsLog, seconds: float, command: str | None = None
) -> Iterator[Publisher]:
    """Compare and publish heads now, every ``seconds``, on every lost connection, and at the end.

    ``command`` gets each published line on its standard input.
    Raises: UnusableDatabase when the file of heads cannot be written.
    """
    publisher = Publisher(database, heads, _delivery(command, seconds))
    look = partial(_look, publisher)
    try:
        if adopt_once(database, heads) is not None:
            log.critical("no heads were published: the ledger was adopted as it is")
        if not look() and publisher.any_frozen():
            # ``look`` freezes accounts that lack published entries. After a restore it has nothing
            # to freeze, because the accounts in a backup are frozen already. The operator must be
            # informed then too.
            log.error("accounts are frozen: their charges are refused until accept-rollback")
    except OSError as error:
        raise UnusableDatabase(
            f"cannot write the published heads to {error.filename or heads.path}: {error.strerror}"
        ) from error
    if heads.damaged:
        log.error("the published heads have damaged lines", lines=len(heads.damaged))
    looking = Repeated("heads", seconds, look)
    publisher.on_disconnect(looking.wake)
    looking.start()
    try:
        yield publisher
    finally:
        looking.close()


def _look(publisher: Publisher) -> bool:
    """Compare the ledger with its published heads once, and publish those that are new.

    Returns True if accounts were frozen, because their latest published entries are missing.
    """
    lacked = publisher.lacks_heads
    frozen = publisher.look()
    if frozen:
        log.critical("the ledger went backwards: accounts are frozen", accounts=len(frozen))
    if publisher.lacks_heads and not lacked:
        log.critical("no published heads are found: charges are refused until adopt-heads")
    if lacked and not publisher.lacks_heads:
        log.warning("published heads are found: charges are accepted again")
    return bool(frozen)


def _delivery(command: str | None, seconds: float) -> Callable[[Sequence[bytes]], bool]:
    """Returns a function that runs ``command`` with lines on its standard input.

    The function returns False, and logs an error, if the command has not taken the lines.
    """
    if command is None:
        return lambda _lines: True
    words = shlex.split(command)

    def deliver(lines: Sequence[bytes]) -> bool:
        # The operator's command is stopped after one interval, so that a command that hangs cannot
        # delay the next comparison of heads any longer.
        limit = max(1.0, seconds)
        try:
            subprocess.run(
                words,
                input=b"".join(lines),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limit,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.error("the heads command failed", error=type(error).__qualname__)
            return False
        return True

    return deliver


def alarmed(heads: HeadsLog, accounts: Sequence[int], at_us: int) -> None:
    """Log that a constraint of the ledger has fired and has frozen ``accounts``.

    Heads are still published, so they show the charges when an operator ends the freeze. ``at_us``
    is the time of the freeze in microseconds.
    """
    log.critical("a constraint of the ledger fired: look at once", accounts=len(accounts))
    if accounts:
        try:
            # A ``HeadsLog``, which reads and writes the files of heads, must be used by one thread
            # alone. The thread that compares heads has one, so this thread makes another.
            HeadsLog(heads.path, heads.copy).mark({at_us})
        except OSError:
            # A failure to write is logged and not raised. The accounts are frozen already, and
            # callers in the same batch must still get a reply.
            log.error("the published heads do not know of the freeze")
