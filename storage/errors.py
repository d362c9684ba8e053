"""The refusals of storage, as facts; one table in ``app`` has the HTTP status of each.

Texts state public facts only. The one exception is ``InvalidRecords``, whose errors only the owner
of the dataset may see.
"""

from collections.abc import Sequence
from uuid import UUID


class StorageError(Exception):
    """The base of every refusal by storage. A refusal changes nothing."""


class NotFound(StorageError):
    """There is no such thing."""


class AlreadyExists(StorageError):
    """The name is taken, or was once: names are never reused."""


class Conflict(StorageError):
    """The change would leave the service without an enabled admin."""


class ManagedElsewhere(StorageError):
    """An identity provider manages the roles and the access of this user."""


class InvalidCursor(StorageError):
    """The cursor did not come from a page of this list."""


class PreconditionFailed(StorageError):
    """``If-Match`` does not name the present state of the account."""


class KeyReused(StorageError):
    """The idempotency key belongs to a request with another body."""


class StillRunning(StorageError):
    """The query has no answer that may be seen yet.

    ``retry_after`` is a fixed number of seconds, because it must not reveal the progress of the
    work. The rest of the lease would reveal it: the lease is renewed until the work ends.
    """

    def __init__(self, id: UUID, retry_after: int = 1) -> None:
        super().__init__("the query is still running")
        self.id, self.retry_after = id, retry_after


class QueryReleased(StorageError):
    """The query was cancelled and nothing was charged; another attempt needs a new key."""

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
    """Records outside the public description. Only the owner may see the errors.

    Args:
        errors: (where, stable type, message) each, such as (("line", 7), "self_loop", "…").
    """

    def __init__(self, errors: Sequence[tuple[tuple[str | int, ...], str, str]]) -> None:
        super().__init__("the records do not fit their public description")
        self.errors = list(errors)


class TooLarge(StorageError):
    """More bytes, or more preparation work, than the published limits allow."""


class UnsupportedMediaType(StorageError):
    """Records in a form that this kind of dataset does not accept."""


class LedgerAlarm(StorageError):
    """The ledger contradicts itself: a bug or tampering. Nothing was written; act immediately."""


class CommitUnknown(StorageError):
    """The connection was lost during COMMIT, so the transaction may or may not be committed.

    No answer may rely on either. A client repeats the request with the same key.
    """

    retry_after = 1


class Busy(StorageError):
    """All attempts at a transaction failed by a lock or a lost connection; nothing was written."""

    retry_after = 1


class StoreFailed(Busy):
    """The store of prepared records cannot be used now, or its content is damaged.

    Texts name no record and no object.
    """

    retry_after = 5


class OtherLedger(StorageError):
    """The store holds records of another ledger; a sweep would remove them as orphans."""


class UnusableDatabase(StorageError):
    """The database lacks a property that the ledger needs; the text names it and the reason."""
