"""Sends notices to the one address that the operator names, signed as Standard Webhooks 1.0 says.

Danger: the instant of a message must reveal no more than its notice. So notices leave after the
full minute in which they arose, whatever they say, and never from the thread of a request.

The database is the queue: a file holds the moment up to which all notices are delivered. A message
that fails is tried again after a growing pause, with those after it, until it is a day old. Of the
processes on one data folder the first delivers; when it ends, another goes on.
"""

import asyncio
import base64
import fcntl
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import structlog

from app.config.settings import Settings
from app.config.trust import trusted
from app.config.webhook import WebhookTarget
from app.contract.times import moment
from app.engine.background import Repeated
from app.usecases import events
from storage.database.database import Database

log = structlog.get_logger("privypurse.webhook")

#: The name of the file in the data folder that holds the moment up to which notices are delivered.
FILE = "webhook.cursor"
#: The name of a second file in the data folder. Only the process that holds its lock delivers
#: notices.
LOCK = "webhook.lock"
#: Seconds between two searches for notices that the webhook has not received yet.
PERIOD = 10.0
#: Notices are read up to the last full minute that ended ``LAG_US`` ago. By then every transaction
#: with a moment in that minute has ended: on PostgreSQL it may be idle for 15 seconds and then run
#: a statement for 15 (``storage.database.postgresql``).
MINUTE_US, LAG_US = 60_000_000, 30_000_000
#: Messages older than this many microseconds are not tried again.
GIVEN_UP_US = 86_400_000_000
#: Seconds that one attempt may take as a whole.
PATIENCE = 5.0
#: Seconds of the first pause after a failure, and of the longest. Each pause is twice the previous
#: one.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 3600.0
#: After these statuses, as after 3xx and 5xx, the message is tried again. After other statuses 4xx
#: it is given up.
TEMPORARY = frozenset({408, 425, 429})


@contextmanager
def announced(settings: Settings, database: Database) -> Iterator[None]:
    """Deliver notices in a thread of its own, if the settings name a webhook."""
    target = settings.webhook()
    if target is None:
        yield
        return
    webhook = Webhook(database, target, settings.data.absolute() / FILE)
    repeated = Repeated("webhook", PERIOD, webhook.look)
    repeated.start()
    try:
        yield
    finally:
        webhook.stop()
        repeated.close()
        webhook.close()


class Webhook:
    """Delivers notices to one address. ``look`` belongs to one thread."""

    def __init__(
        self,
        database: Database,
        target: WebhookTarget,
        file: Path,
        now_us: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now_us``: the moment in microseconds; that of the database unless tests set it.

        ``monotonic``: the clock of the pauses, in seconds.
        """
        self._database, self._target, self._file = database, target, file
        self._now_us, self._monotonic = now_us or database.now_us, monotonic
        self._closing = threading.Event()
        self._pause, self._not_before = FIRST_PAUSE, 0.0
        #: The messages that need not be sent again, by id. The value is the account whose low
        #: budget the message is about, and None for other messages.
        self._done: dict[str, int | None] = {}
        #: The descriptor of the locked file if this process delivers notices, and otherwise None.
        self._lock: int | None = None
        self._delivers()

    def stop(self) -> None:
        """End the current look after its current message, and do nothing in later ones."""
        self._closing.set()

    def close(self) -> None:
        """Let another process deliver. No look may run, and none may follow."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def look(self) -> None:
        """Deliver the notices of the full minutes that have ended since the last delivery."""
        if self._closing.is_set() or self._monotonic() < self._not_before:
            return
        if not self._delivers():
            return
        now_us = self._now_us()
        until_us = (now_us - LAG_US) // MINUTE_US * MINUTE_US
        since_us = max(self._sent_until(), now_us - GIVEN_UP_US)
        if until_us <= since_us:
            return
        notices, changed = events.between(self._database, since_us, until_us)
        for event in notices:
            if event.id in self._done:
                continue
            if self._closing.is_set():
                return
            if not self._deliver(event, until_us):
                self._not_before = self._monotonic() + self._pause
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
                return
            self._done[event.id] = event.account
        # Of the notices sent already, a later search returns again only those of low budgets. So
        # only their ids stay, until the account has changed and its budget is no longer low.
        low = {event.id for event in notices}
        self._done = {
            id: account
            for id, account in self._done.items()
            if account is not None and (id in low or account not in changed)
        }
        self._pause = FIRST_PAUSE
        self._advance(until_us)

    def _delivers(self) -> bool:
        """Whether this process is the one on the data folder that delivers."""
        if self._lock is None:
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            descriptor = os.open(self._file.with_name(LOCK), flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._lock = descriptor
        if not self._file.exists():
            # A new webhook begins now: it gets no notices of the time before it.
            self._advance(self._now_us())
        return True

    def _deliver(self, event: events.Event, at_us: int) -> bool:
        """Send one message. Returns False if it must be tried again."""
        # httpx is imported here, because it takes a tenth of a second to load, and most services
        # have no webhook.
        import httpx

        message = {
            "type": event.kind,
            "timestamp": moment(at_us).isoformat(),
            "data": {name: value for name, value in event.data.items() if value is not None},
        }
        body = json.dumps(message, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "privypurse-webhook"}
        headers |= signed_headers(self._target.key, event.id, round(time.time()), body)
        try:
            status = asyncio.run(self._post(body, headers))
        except (httpx.HTTPError, TimeoutError) as error:
            # Only the class of the error is logged, because its text may contain the address, which
            # may contain a secret.
            log.error("the webhook was not reached", error=type(error).__qualname__)
            return False
        if 200 <= status < 300:
            return True
        log.error("the webhook refused a notice", kind=event.kind, status=status)
        return 400 <= status < 500 and status not in TEMPORARY

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the reply. Raises: httpx.HTTPError, TimeoutError."""
        import httpx

        # Danger: timeouts of httpx limit one read. A receiver that sends a byte now and then would
        # block this thread, and the shutdown of the service, which waits for it. So the whole
        # exchange has a limit. Only the look-up of a name has its own, that of the system.
        async with (
            asyncio.timeout(PATIENCE),
            httpx.AsyncClient(
                timeout=None, follow_redirects=False, trust_env=False, verify=trusted()
            ) as client,
            client.stream("POST", self._target.address, content=body, headers=headers) as reply,
        ):
            return reply.status_code  # The body of the reply is never read.

    def _sent_until(self) -> int:
        try:
            return int(self._file.read_text("ascii"))
        except ValueError:
            # A power failure may leave an empty file. Then the notices of the last 24 hours are
            # sent again, so that none is lost.
            return 0

    def _advance(self, us: int) -> None:
        temporary = self._file.with_name(f".{FILE}.{token_hex(8)}")
        try:
            temporary.write_text(str(us), "ascii")
            temporary.replace(self._file)
        finally:
            temporary.unlink(missing_ok=True)


def signed_headers(key: bytes, id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of a message that begins its way at ``at``, in seconds (Standard Webhooks)."""
    signature = hmac.digest(key, f"{id}.{at}.".encode() + body, sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
