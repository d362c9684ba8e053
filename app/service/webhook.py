"""Sends notices to the one address that the operator names, signed as Standard Webhooks 1.0 says.

Danger: the instant of a message must reveal no more than its notice. So notices leave after the
full minute in which they arose, whatever they say, and never from the thread of a request.

The database is the queue: a file holds the moment up to which all notices are delivered. A message
that fails is tried again after a growing pause, with those after it, until it is a day old.
"""

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import structlog

from app.config.settings import Settings
from app.config.webhook import WebhookTarget
from app.contract.times import moment
from app.engine.background import Repeated
from app.usecases import events
from storage.database.database import Database

log = structlog.get_logger("privypurse.webhook")

#: The file of the moment up to which notices are delivered, in the data folder.
FILE = "webhook.cursor"
#: Seconds between two looks.
PERIOD = 10.0
#: Notices are read up to the last full minute that ended this long ago, in microseconds, so that
#: transactions that began in it have ended.
MINUTE_US, LAG_US = 60_000_000, 5_000_000
#: Older messages are given up, in microseconds.
GIVEN_UP_US = 86_400_000_000
#: Seconds that one attempt may take to connect, to send and to receive.
PATIENCE = 5.0
#: Seconds of the first pause after a failure and of the longest. Each is twice the one before it.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 3600.0
#: Statuses of a receiver that may accept the same message later, beside all of 300 and 500 on.
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
        webhook.close()
        repeated.close()


class Webhook:
    """Delivers notices to one address. ``look`` belongs to one thread."""

    def __init__(
        self,
        database: Database,
        target: WebhookTarget,
        file: Path,
        now_us: Callable[[], int] | None = None,
    ) -> None:
        """``now_us``: the moment in microseconds; that of the database unless tests set it."""
        self._database, self._target, self._file = database, target, file
        self._now_us = now_us or database.now_us
        self._closing = threading.Event()
        self._pause, self._not_before = FIRST_PAUSE, 0.0
        #: The kinds of messages that need not be sent again, by id.
        self._done: dict[str, str] = {}
        if not file.exists():
            self._advance(self._now_us())  # Of the time before the webhook, nothing is sent.

    def close(self) -> None:
        """End the current look after its current message, and do nothing in later ones."""
        self._closing.set()

    def look(self) -> None:
        """Deliver the notices of the full minutes that have ended since the last delivery."""
        if self._closing.is_set() or time.monotonic() < self._not_before:
            return
        now_us = self._now_us()
        until_us = (now_us - LAG_US) // MINUTE_US * MINUTE_US
        since_us = max(int(self._file.read_text("ascii")), now_us - GIVEN_UP_US)
        if until_us <= since_us:
            return
        for event in events.between(self._database, since_us, until_us):
            if event.id in self._done:
                continue
            if self._closing.is_set():
                return
            if not self._deliver(event, until_us):
                self._not_before = time.monotonic() + self._pause
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
                return
            self._done[event.id] = event.kind
        # Only the event of a low budget comes again in later minutes.
        self._done = {id: kind for id, kind in self._done.items() if kind == "budget_low"}
        self._pause = FIRST_PAUSE
        self._advance(until_us)

    def _deliver(self, event: events.Event, at_us: int) -> bool:
        """Send one message. Returns False if it must be tried again."""
        import httpx  # Takes a tenth of a second to load, and most services have no webhook.

        message = {
            "type": event.kind,
            "timestamp": moment(at_us).isoformat(),
            "data": {name: value for name, value in event.data.items() if value is not None},
        }
        body = json.dumps(message, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "privypurse-webhook"}
        headers |= signed_headers(self._target.key, event.id, round(time.time()), body)
        try:
            with (
                httpx.Client(timeout=PATIENCE, follow_redirects=False, trust_env=False) as client,
                client.stream("POST", self._target.address, content=body, headers=headers) as reply,
            ):
                status = reply.status_code  # The body of the reply is never read.
        except httpx.HTTPError as error:
            # The text of the error may hold the address, which may hold a secret.
            log.error("the webhook was not reached", error=type(error).__qualname__)
            return False
        if 200 <= status < 300:
            return True
        log.error("the webhook refused a notice", kind=event.kind, status=status)
        return 400 <= status < 500 and status not in TEMPORARY

    def _advance(self, us: int) -> None:
        temporary = self._file.with_name(f".{FILE}")
        temporary.write_text(str(us), "ascii")
        temporary.replace(self._file)


def signed_headers(key: bytes, id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of a message that begins its way at ``at``, in seconds (Standard Webhooks)."""
    signature = hmac.digest(key, f"{id}.{at}.".encode() + body, sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
