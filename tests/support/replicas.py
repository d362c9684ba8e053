"""A replica as the interleavings see it: where it is, and the calls it makes next.

They are those of ``app.engine.answering`` about one query, in its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from accounting.errors import AccountingError
from accounting.privacy_loss import PrivacyLoss
from storage.errors import CommitUnknown, LedgerAlarm, StorageError
from storage.ledger.ledger import Ledger, Replay, Reservation, Reserve

#: The key that everybody asks for, and one that competes for the room of a single charge.
KEYS = ("a", "b")


class At(NamedTuple):
    """Where a replica is: in which call about which key, and what it was told so far in it."""

    phase: str = "idle"
    key: str = ""
    attempt: int = 0
    body: bytes = b""
    told: tuple[Any, ...] = ()


IDLE = At()


class Replica:
    """``asked``: the request of each key. ``ids``: of the queries that are there now, by key."""

    def __init__(
        self, ledger: Ledger, asked: Mapping[str, Reserve], ids: Mapping[str, UUID]
    ) -> None:
        self._ledger, self._asked, self._ids = ledger, asked, ids

    def choices(self, at: At) -> tuple[str, ...]:
        return {
            "idle": tuple(f"ask {key}" for key in KEYS),
            "held": ("renew", "release", "open"),
            "opened": ("renew", "settle"),
            "lost": ("replay",),
            "leaving": ("leave",),
        }.get(at.phase, (at.phase,))

    def call(self, at: At, choice: str) -> At:
        """Make the call; where the replica is when it has returned."""
        name, _, key = choice.partition(" ")
        key = key or at.key
        try:
            if name == "ask":
                outcome = self._ledger.reserve(self._asked[key])
                if isinstance(outcome, Replay):
                    return At("leaving", key, body=outcome.body)
                return At("held", key, outcome.attempt)
            if name == "renew":
                with suppress(CommitUnknown):
                    self._ledger.renew(self._held(at))
                return at
            if name == "release":
                self._ledger.release(self._held(at))
                return IDLE
            if name == "settle":
                reply = {"status": 201, "body": at.body, "release_us": 0}
                stored = self._ledger.settle(self._held(at), **reply)  # type: ignore[arg-type]
                return At("leaving", key, body=at.body) if stored else At("lost", key)
            assert name == "replay", name
            asked = self._asked[key]
            found = self._ledger.replay(asked.analyst_id, key, asked.body_hash)
            return IDLE if found is None else At("leaving", key, body=found.body)
        except LedgerAlarm as alarm:
            raise AssertionError("only the second wall stopped it") from alarm
        except (StorageError, AccountingError):
            return IDLE  # the client is told so, and comes again with the same key

    def _held(self, at: At) -> Reservation:
        return Reservation(self._ids[at.key], at.attempt, 1, 0, b"", PrivacyLoss(0))
