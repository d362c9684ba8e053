"""Requests to the ledger about one query, and their outcomes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from accounting.privacy_loss import LARGEST, PrivacyLoss

#: A function that returns True if a stored request is the same as a new one. Its arguments are the
#: stored request's format number and its bytes.
Equals = Callable[[int, bytes], bool]


class QueryState(IntEnum):
    """The state of a query. Its charge is kept unless the state is RELEASED."""

    RUNNING = 0
    SETTLED = 1
    RELEASED = 2


@dataclass(frozen=True, slots=True)
class Reserve:
    """The charge of one new query.

    ``body_hash`` is the SHA-256 of the validated request, and ``request`` its canonical JSON for
    the history, in the version ``form`` of its canonical form. ``key`` is None for a request
    without Idempotency-Key, which is always new. ``equals`` compares a stored request of another
    hash, because a version with more fields writes another text for the same request.
    ``version`` is the version whose records the caller holds; no other may be charged. None: any.
    ``limited_key`` is the id of the API key that sent it, if that key has an account of its own.
    """

    query_id: UUID
    analyst_id: int
    dataset_id: int
    key: str | None
    body_hash: bytes
    charge: PrivacyLoss
    request: bytes
    version: int | None = None
    form: int = 1
    limited_key: str | None = None
    equals: Equals | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.charge.fits(LARGEST):
            raise ValueError("a charge is at most ε = 10⁹ and below δ = 1")
        if not self.charge.unpriced and self.charge.rho_femto > self.charge.epsilon_nano * 10**6:
            raise ValueError("ρ is at most ε, so that sums of charges fit 64 bits")
        if not any(self.charge.amounts):
            raise ValueError("a query that costs nothing needs no reservation")
        if self.key is not None and not (1 <= len(self.key) <= 255 and self.key.isascii()):
            raise ValueError("a key has 1 to 255 ASCII characters")

    @property
    def stored_key(self) -> str:
        """The idempotency key, or a unique text in its place if the request has none."""
        # The text for a request without a key begins with a middle dot, which is not ASCII. So it
        # equals no key of a client, because those are ASCII.
        return self.key if self.key is not None else f"·{self.query_id.hex}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to open the records of ``version`` once, as attempt ``attempt`` of the query.

    ``receipt`` is the head of the account's chain after the entry that charged it.
    ``reserved_us`` is the moment when this attempt began, ``remaining`` the budget then, and
    ``has_rho`` tells whether the account counts in ρ. Of a later attempt alone: ``form`` is that of
    the stored request, and ``charged_rho`` the femto-ρ of its charge, if they were stored.
    """

    query_id: UUID
    attempt: int
    version: int
    reserved_us: int
    receipt: bytes
    remaining: PrivacyLoss
    has_rho: bool = False
    charged_rho: int | None = None
    form: int | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The stored reply of a query. It is free of charge and has the bytes of the first reply."""

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
