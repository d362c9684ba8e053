"""The reply to a query: a new one, or the stored one sent again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True)
class Reply:
    """A reply to the client. The bytes of a stored answer are sent unchanged."""

    query_id: UUID
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def replayed(query_id: UUID, status: int, body: bytes) -> Reply:
    """A stored answer as a reply that says so."""
    return Reply(query_id, status, body, {"Idempotency-Replayed": "true"})
