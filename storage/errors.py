"""What storage refuses, as facts; the HTTP status of each stands in one table in ``app``.

Texts are made of public facts only. The one exception is ``InvalidRecords``, whose errors only the
owner of the dataset may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID


class StorageError(Exception):
    """The base of every refusal by storage; a refusal has changed nothing."""


class NotFound(StorageError):
    """There is no such thing."""


class AlreadyExists(StorageError):
    """The name is taken, or was once: names are never reused."""


class Conflict(StorageError):
    """The change would leave the service without an enabled admin."""


class ManagedElsewhere(StorageError):
    """Roles and keys of this user are the business of an identity provider."""


class InvalidCursor(StorageError):
    """The cursor did not come from a page of this list."""


class PreconditionFailed(StorageError):
    """``If-Match`` names another state of the account than the one it is in."""


class KeyReused(StorageError):
    """The idempotency key belongs to a request with another body."""


class StillRunning(StorageError):
    """The query has not been answered as far as anybody may see.

    ``retry_after`` is a fixed number of seconds: it must not tell how far the work has come. Nor
    could it be what is left of the lease: that is renewed until the work is done, not its instant.
    """

    def __init__(self, id: UUID, retry_after: int = 1) -> None:
        super().__init__("the query is still running")
        self.id, self.retry_after = id, retry_after


class QueryReleased(StorageError):
    """The query was cancelled and nothing was charged: a new one needs a new key."""

    def __init__(self, id: UUID) -> None:
        super().__init__("the query was cancelled; nothing was charged")
        self.id = id


class TooLate(StorageError):
    """The query can no longer be cancelled; nothing changed."""

    def __init__(self, id: UUID) -> None:
        super().__init__("the query can no longer be cancelled")
        self.id = id


class NoRecords(StorageError):
    """The dataset has no published version to query."""


class UploadRunning(StorageError):
    """Another upload to this dataset is still being prepared."""

    retry_after = 5


class InvalidRecords(StorageError):
    """Records outside the public description: for the eyes of the owner alone.

    Args:
        errors: (where, stable type, message) each, such as (("line", 7), "self_loop", "…").
    """

    def __init__(self, errors: Sequence[tuple[tuple[str | int, ...], str, str]]) -> None:
        super().__init__("the records do not fit their public description")
        self.errors = list(errors)


class TooLarge(StorageError):
    """More bytes, or more preparation work, than the published limits allow."""


class UnsupportedMediaType(StorageError):
    """Records in a form that is not read for this kind of dataset."""


class LedgerAlarm(StorageError):
    """The ledger contradicts itself: a bug or tampering. Nothing was written; look at once."""


class CommitUnknown(StorageError):
    """The connection was lost during COMMIT, so the transaction may or may not stand.

    Nothing may be answered on its strength. A client repeats the request with the same key.
    """

    retry_after = 1


class Busy(StorageError):
    """Every attempt at a transaction met a lock or a lost connection; nothing was written."""

    retry_after = 1


class StoreFailed(Busy):
    """The store of prepared records cannot be used now, or what it holds is damaged.

    Texts name no record and no object.
    """

    retry_after = 5


class OtherLedger(StorageError):
    """The store holds the records of another ledger, which would take them for left behind."""


class UnusableDatabase(StorageError):
    """The database cannot give what the ledger needs; the text says what and why."""
