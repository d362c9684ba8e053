"""Verifies the ledger in the background, and remembers the last outcome.

A whole verification reads every entry and query, so it runs at most once per ``whole`` seconds,
or on request as long as it takes less than a second. In between, only new entries are read. The
states up to which they were verified are in the files of published heads, never in the database.

Run times are public: they follow from how much was charged, and queries count as running until
their deadlines.
"""

import threading
import time
from concurrent.futures import Future

import structlog

from storage.assurance.heads import HeadsLog
from storage.assurance.verification import Verification, verify, verify_new
from storage.database.database import Database
from storage.errors import StorageError

log = structlog.get_logger("privypurse.verification")

#: If the last complete verification took less than this many seconds, a verification on request is
#: complete too. Otherwise it reads new rows alone.
QUICK = 1.0
#: After a verification on request, the next one on request waits this many times as long as it
#: took. So such verifications take less than one part in this many of the time.
SHARE = 10


class Verifier:
    """Runs verifications in one thread.

    Args:
        heads: the published heads, which this thread alone may use.
        seconds: between two runs that nobody requested.
        whole: seconds between two such runs that read everything.
    """

    def __init__(self, database: Database, heads: HeadsLog, seconds: float, whole: float) -> None:
        self._database, self._heads = database, heads
        self._seconds, self._whole = seconds, whole
        self._wake, self._closing = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Future[None]] = []
        #: The durations in seconds of the last complete run and of the last run on request. The
        #: pauses after such runs follow from them.
        self._took, self._on_request = 0.0, 0.0
        self._latest: Verification | None = None
        #: True after a run that failed with an error because of the stored rows, until a later run
        #: has an outcome.
        self.broke_off = False
        #: The time at which the last complete run without a bad row began, in microseconds since
        #: 1970; None if there was none.
        self.whole_us: int | None = None
        self._thread = threading.Thread(target=self._run, name="verification", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after its current run."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    @property
    def latest(self) -> Verification | None:
        """The outcome of the last run; None before the first one, and after one that failed."""
        return self._latest

    def request(self) -> "Future[None]":
        """Begin a run soon. The future ends after a run that began after this call.

        Danger: whoever waits no longer must cancel it, or it stays in memory until that run.
        """
        future: Future[None] = Future()
        with self._lock:
            self._waiting = [one for one in self._waiting if not one.cancelled()]
            self._waiting.append(future)
        self._wake.set()
        return future

    def _run(self) -> None:
        while not self._closing.is_set():
            requested = self._wake.wait(self._seconds)
            self._wake.clear()
            if self._closing.wait(self._on_request * SHARE if requested else 0):
                break
            began = time.monotonic()
            with self._lock:
                waiting, self._waiting = self._waiting, []
            try:
                self._verify(requested)
            except Exception as error:
                self._fail(error)
            if requested:
                self._on_request = time.monotonic() - began
            for future in waiting:
                if future.set_running_or_notify_cancel():
                    future.set_result(None)
        with self._lock:
            for future in self._waiting:
                future.cancel()

    def _fail(self, error: Exception) -> None:
        """Log a run without an outcome. Unless it can be repeated, no earlier outcome counts."""
        log.error("the verification failed", error=type(error).__qualname__)
        if not isinstance(error, StorageError | OSError):
            # The error may come from a row that somebody has manipulated. The earlier outcome is
            # dropped, so that the ledger is not shown as valid.
            self._latest, self.broke_off = None, True

    def _verify(self, requested: bool) -> None:
        """Verify once. Only a run that nobody requested writes to the files of heads."""
        heads, began = self._heads, time.monotonic()
        heads.refresh()
        latest = self._latest
        self.whole_us = max(self.whole_us or 0, heads.whole_us or 0) or None
        is_due = self.whole_us is None or time.time() - self.whole_us / 1e6 >= self._whole
        # A run over new rows alone would miss the bad row that an earlier run reported, and would
        # call the ledger valid. So everything is read.
        is_bad = latest is not None and not latest.valid
        if is_due or is_bad or (requested and self._took < QUICK):
            outcome = verify(
                self._database, heads=heads.present, streams=heads.streams, released_only=True
            )
            self._took = time.monotonic() - began
            if outcome.valid:
                self.whole_us = outcome.at_us
        else:
            outcome = verify_new(
                self._database, heads.present, heads.verified, heads.streams, heads.verified_streams
            )
        if outcome.valid and heads.exist and not requested:
            heads.verify(outcome.verified, outcome.at_us, outcome.whole, outcome.streams)
        if not (outcome.valid or is_bad):
            log.critical("the ledger is not valid: run verify")
        self._latest, self.broke_off = outcome, False
