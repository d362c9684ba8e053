"""Requests to the ledger about one query, and their outcomes."""

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from accounting.privacy_loss import LARGEST, PrivacyLoss


class QueryState(IntEnum):
    """How far a query is. Its charge stands unless it is released."""

    RUNNING = 0
    SETTLED = 1
    RELEASED = 2


@dataclass(frozen=True, slots=True)
class Reserve:
    """The charge of one new query.

    ``body_hash``: SHA-256 of the validated request; ``request``: its canonical JSON, kept for the
    history; ``key`` None stands for a request without Idempotency-Key, which is always new.
    """

    query_id: UUID
    analyst_id: int
    dataset_id: int
    key: str | None
    body_hash: bytes
    charge: PrivacyLoss
    request: bytes

    def __post_init__(self) -> None:
        if not self.charge.fits(LARGEST):
            raise ValueError("a charge is at most ε = 10⁹ and below δ = 1")
        if self.charge == PrivacyLoss(0):
            raise ValueError("a query that costs nothing needs no reservation")
        if self.key is not None and not (1 <= len(self.key) <= 255 and self.key.isascii()):
            raise ValueError("a key has 1 to 255 ASCII characters")

    @property
    def stored_key(self) -> str:
        """The key, or one that stands for its absence."""
        # No key from outside can be this one: those are ASCII.
        return self.key if self.key is not None else f"·{self.query_id.hex}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to open the records of ``version`` once, as attempt ``attempt`` of the query.

    ``receipt`` is the hash, in its chain, of the entry that charged the analyst's account;
    ``reserved_us`` is when this attempt began; ``remaining`` is what the account had left then.
    """

    query_id: UUID
    attempt: int
    version: int
    reserved_us: int
    receipt: bytes
    remaining: PrivacyLoss


@dataclass(frozen=True, slots=True)
class Replay:
    """The stored reply of a query: it costs nothing and equals the first byte for byte."""

    query_id: UUID
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Settle:
    """The reply of one attempt, to be stored before it leaves at ``release_us`` or later."""

    query_id: UUID
    attempt: int
    status: int
    body: bytes
    release_us: int
