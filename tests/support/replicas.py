"""The model of a replica that the interleavings step through: its state and its next calls.

The calls are those of ``app.engine.answering`` and ``app.engine.attempts`` for one query, in the
same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from accounting.errors import AccountingError
from accounting.privacy_loss import PrivacyLoss
from storage.errors import CommitUnknown, LedgerAlarm, StorageError
from storage.ledger.ledger import Replay, Reservation, Reserve
from tests.support.blocking import BlockingLedger

#: The idempotency keys of requests. All replicas send ``a``, and ``b`` competes with it for a
#: budget of one charge.
KEYS = ("a", "b")


class At(NamedTuple):
    """The state of a replica: its phase, its key, and the results of its transactions so far."""

    phase: str = "idle"
    key: str = ""
    attempt: int = 0
    body: bytes = b""
    results: tuple[Any, ...] = ()


IDLE = At()


class Replica:
    """``requests``: the request of each key. ``ids``: the id of each stored query, by key."""

    def __init__(
        self, ledger: BlockingLedger, requests: Mapping[str, Reserve], ids: Mapping[str, UUID]
    ) -> None:
        self._ledger, self._requests, self._ids = ledger, requests, ids

    def choices(self, at: At) -> tuple[str, ...]:
        return {
            "idle": tuple(f"ask {key}" for key in KEYS),
            "held": ("renew", "release", "open"),
            "opened": ("renew", "settle"),
            "lost": ("replay",),
            "leaving": ("leave",),
        }.get(at.phase, (at.phase,))

    def call(self, at: At, choice: str) -> At:
        """Make the call and return the state of the replica after it."""
        name, _, key = choice.partition(" ")
        key = key or at.key
        try:
            if name == "ask":
                outcome = self._ledger.reserve(self._requests[key])
                if isinstance(outcome, Replay):
                    return At("leaving", key, body=outcome.body)
                return At("held", key, outcome.attempt)
            if name == "renew":
                with suppress(CommitUnknown):
                    self._ledger.renew(self._reservation(at))
                return at
            if name == "release":
                self._ledger.release(self._reservation(at))
                return IDLE
            if name == "settle":
                reply = {"status": 201, "body": at.body, "release_us": 0}
                stored = self._ledger.settle(self._reservation(at), **reply)  # type: ignore[arg-type]
                return At("leaving", key, body=at.body) if stored else At("lost", key)
            assert name == "replay", name
            request = self._requests[key]
            replay = self._ledger.replay(request.analyst_id, key, request.body_hash)
            return IDLE if replay is None else At("leaving", key, body=replay.body)
        except LedgerAlarm as alarm:
            raise AssertionError("only the CHECK constraint stopped it") from alarm
        except (StorageError, AccountingError):
            return IDLE  # The client receives an error and retries with the same key.

    def _reservation(self, at: At) -> Reservation:
        return Reservation(self._ids[at.key], at.attempt, 1, 0, b"", PrivacyLoss(0))
