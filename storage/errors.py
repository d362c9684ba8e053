"""The refusals of storage, as facts; ``app/contract/problems.py`` has the HTTP status of each.

Texts state public facts only. The exceptions are ``InvalidRecords`` and ``SourceFailed``, whose
texts only the owner of the dataset may see.
"""

from collections.abc import Sequence
from uuid import UUID


class StorageError(Exception):
    """The base of every refusal by storage. A refusal changes nothing."""


class NotFound(StorageError):
    """The user, dataset, query or other row that a request names does not exist."""


class AlreadyExists(StorageError):
    """Another row has the name, or had it earlier: names are never reused."""


class Conflict(StorageError):
    """The change would leave the service without an enabled admin."""


class ManagedElsewhere(StorageError):
    """An identity provider manages the roles and the access of this user."""


class InvalidCursor(StorageError):
    """The cursor did not come from a page of this list."""


class PreconditionFailed(StorageError):
    """The header ``If-Match`` of the request does not name the present state of the account."""


class KeyReused(StorageError):
    """The idempotency key belongs to a request with another body."""


class StillRunning(StorageError):
    """The query has no answer that may be seen yet.

    ``retry_after`` is a fixed number of seconds, because it must not reveal the progress of the
    work. The remaining time of the query's lease would reveal the progress, because the process
    renews the lease until the work ends.
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


class RequestOpen(StorageError):
    """The analyst has an open request for budget on this dataset already."""


class RequestDecided(StorageError):
    """The request for budget is decided or withdrawn, so nothing is left to decide."""


class NoRecords(StorageError):
    """The dataset has no published version to query."""


class UploadRunning(StorageError):
    """Another upload to this dataset is still being prepared."""

    retry_after = 5


class DescriptionReplaced(UploadRunning):
    """The description of the dataset was replaced while the records were sent. Send them again."""


class InvalidRecords(StorageError):
    """Records outside the public description. Only the owner may see the errors.

    Args:
        errors: a place in the upload, a stable type and a message for each error, such as
            (("line", 7), "self_loop", "…").
    """

    def __init__(self, errors: Sequence[tuple[tuple[str | int, ...], str, str]]) -> None:
        super().__init__("the records do not fit their public description")
        self.errors = list(errors)


class TooLarge(StorageError):
    """An upload has more bytes, or needs more preparation work, than published limits allow."""


class UnsupportedMediaType(StorageError):
    """The upload has a format that this kind of dataset does not accept."""


class LedgerAlarm(StorageError):
    """The ledger contradicts itself, by a bug or by tampering. An operator must act immediately.

    The transaction wrote nothing.
    """


class StreamAlarm(LedgerAlarm):
    """A stream of the journal is not where this process left it: somebody else has changed it."""


class CommitUnknown(StorageError):
    """The connection was lost during COMMIT, so the transaction may or may not be committed.

    No reply may state one of the two. A client repeats the request with the same idempotency key.
    """

    retry_after = 1


class Busy(StorageError):
    """The service cannot do this now, because of a lock, a lost connection or another version.

    Nothing was written.
    """

    retry_after = 1


class StoreFailed(Busy):
    """The object store of prepared records cannot be used now, or its content is damaged.

    The error texts name no record and no object.
    """

    retry_after = 5


class NotOpen(Busy):
    """The version is not open in this process, which is a public fact. Nothing was charged."""

    retry_after = 5


class SourceFailed(StorageError):
    """A source of records refused or could not be reached; only the owner may see the reason.

    The text repeats no text of the source, which may quote a record.
    """

    retry_after = 5


class OutOfRoom(Busy):
    """The disk is full, or the process has no file descriptor left. Nothing was changed."""

    retry_after = 30


class OtherLedger(StorageError):
    """The object store holds records of another ledger. A sweep would remove them as orphans."""


class UnusableDatabase(StorageError):
    """The database lacks a property that the ledger needs; the text names it and the reason."""
