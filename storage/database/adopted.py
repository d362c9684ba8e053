"""What the migration to schema 0008 wrote of the tables that no fact of the journal stated before.

Danger: the columns, their order and the encoding of a row must never change, or ledgers that were
adopted with them no longer verify.

``COLUMNS`` and ``KEYS`` are those of schema 0007. Only rows that no statement changes afterwards
have a digest: queries only once they have ended.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

#: For each table, the columns that are covered by the digest of its adopted rows, which are older
#: than the journal.
COLUMNS: dict[str, tuple[str, ...]] = {
    "settlement": ("query_id", "attempt", "answer_hash", "at_us", "digest"),
    "audit": ("id", "at_us", "actor_id", "action", "subject", "detail"),
    "query": (
        *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash", "request"),
        *("eps_n", "delta_a", "state", "attempt", "attempt_us", "lease_until", "answer"),
        *("answer_hash", "answer_status", "created_us", "settled_us", "release_us"),
    ),
    "users": ("id", "name", "disabled", "created_us"),
    "user_role": ("user_id", "role"),
    "identity": ("user_id", "issuer", "subject"),
    "api_key": ("id", "user_id", "secret_hash", "created_us", "revoked_us"),
    "dataset": (
        *("id", "name", "owner_id", "description", "domain", "neighbouring"),
        *("records_per_person", "fixed_rows", "version", "versions", "created_us", "nodes_folder"),
    ),
    "dataset_version": ("dataset_id", "version", "published_us", "removed_us", "folder"),
}
#: For each table, the columns by which its adopted rows are sorted before they are hashed.
KEYS: dict[str, tuple[str, ...]] = {
    "settlement": ("query_id",),
    "audit": ("id",),
    "query": ("id",),
    "users": ("id",),
    "user_role": ("user_id", "role"),
    "identity": ("user_id",),
    "api_key": ("id",),
    "dataset": ("id",),
    "dataset_version": ("dataset_id", "version"),
}


def digest_of_rows(salt: bytes, rows: Iterable[Sequence[Any]]) -> tuple[int, bytes]:
    """The number of rows and their digest, 32 bytes; ``rows`` have ``COLUMNS`` in key order."""
    whole, count = sha256(salt), 0
    for row in rows:
        whole.update(b"".join(map(_encoded, row)))
        count += 1
    return count, whole.digest()


def _encoded(value: Any) -> bytes:
    """One value: a letter for its type, its length, and its bytes."""
    if value is None:
        return b"n"
    if isinstance(value, int):
        letter, content = b"i", str(value).encode()
    elif isinstance(value, str):
        letter, content = b"s", value.encode()
    else:
        letter, content = b"b", value.bytes if isinstance(value, UUID) else bytes(value)
    return letter + len(content).to_bytes(4, "big") + content
