"""The encodings that hash chains bind: each is stated once, and writes as well as verifies.

Danger: an encoding never changes its name or its bytes, or ledgers that were written with it no
longer verify. A changed one gets another name, and the old one stays.

head₀ is 32 zero bytes; headₙ = SHA-256(headₙ₋₁ ‖ digest of entry n). A digest is SHA-256 over the
name of the encoding and its fields, each with its length before it, so no two entries share an
encoding. An entry's sequence number is its position in the chain.

An entry's *subject* binds what its own columns only point at: for a genesis the analyst and the
dataset of the account, for a charge the request it paid for, for a release the attempt that was
given up. ``ending_digest`` does the same for how a query ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from hashlib import sha256
from struct import Struct
from typing import Any

EMPTY_HEAD = bytes(32)


class EntryKind(IntEnum):
    """Charges, releases and unfreezes move what is charged; geneses and limit changes the limit.

    An unfreeze charges again what a restored ledger had forgotten.
    """

    CHARGE = 1
    RELEASE = 2
    LIMIT_CHANGE = 3
    FREEZE = 4
    UNFREEZE = 5
    GENESIS = 6


class Layout:
    """One encoding, packed at once because a verification packs millions of them.

    ``fields``: ``q`` is a signed 64-bit number, ``16s`` so many bytes. Values beyond them are
    bytes of any length.
    """

    def __init__(self, name: bytes, *fields: str) -> None:
        sizes = [len(name), *(Struct(f">{field}").size for field in fields)]
        formats = (f"{len(name)}s", *fields)
        self._struct = Struct(">" + "".join(f"I{field}" for field in formats))
        self._fields = len(fields)
        self._template: list[Any] = [0] * (2 * len(formats))
        self._template[::2] = sizes
        self._template[1] = name

    def digest(self, *values: Any) -> bytes:
        arguments = self._template.copy()
        arguments[3::2] = values[: self._fields]
        packed = self._struct.pack(*arguments)
        for value in values[self._fields :]:
            packed += len(value).to_bytes(4, "big") + value
        return sha256(packed).digest()


#: account, kind, query, actor, ε, δ, moment; the second also a subject.
_ENTRY = Layout(b"privypurse entry 1", "q", "q", "16s", "q", "q", "q", "q")
_ENTRY_WITH_SUBJECT = Layout(b"privypurse entry 2", "q", "q", "16s", "q", "q", "q", "q")
#: The same of entries that name no query.
_BARE = Layout(b"privypurse entry 1", "q", "q", "0s", "q", "q", "q", "q")
_BARE_WITH_SUBJECT = Layout(b"privypurse entry 2", "q", "q", "0s", "q", "q", "q", "q")
#: rank, dataset, analyst
_ACCOUNT = Layout(b"privypurse account 1", "q", "q", "q")
#: query, analyst, dataset; key, digest of the body, request
_REQUEST = Layout(b"privypurse request 1", "16s", "q", "q")
#: query, attempt, version, status, digest of the answer, settled, released; the second also when
#: the attempt began and until when it held the query.
_ENDING = Layout(b"privypurse ending 1", "16s", "q", "q", "q", "32s", "q", "q")
_ENDING_OF_ATTEMPT = Layout(b"privypurse ending 2", "16s", "q", "q", "q", "32s", "q", "q", "q", "q")
#: query, version, end of the lease
_RELEASE = Layout(b"privypurse release 1", "16s", "q", "q")


def next_head(head: bytes, digest: bytes) -> bytes:
    """The head after an entry."""
    return sha256(head + digest).digest()


def entry_digest(
    account_id: int,
    kind: int,
    query_id: bytes | None,
    actor: int,
    amounts: Sequence[int],
    at_us: int,
    subject: bytes | None = None,
) -> bytes:
    """The digest of one entry, 32 bytes; ``amounts`` are signed, one per measure."""
    if subject is None:
        layout = _BARE if query_id is None else _ENTRY
        return layout.digest(account_id, kind, query_id or b"", actor, *amounts, at_us)
    layout = _BARE_WITH_SUBJECT if query_id is None else _ENTRY_WITH_SUBJECT
    return layout.digest(account_id, kind, query_id or b"", actor, *amounts, at_us, subject)


def account_subject(rank: int, dataset_id: int, analyst_id: int) -> bytes:
    """Binds a genesis to the analyst and the dataset of its account; 0 stands for all."""
    return _ACCOUNT.digest(rank, dataset_id, analyst_id)


def request_subject(
    query_id: bytes, analyst_id: int, dataset_id: int, key: str, body_hash: bytes, request: bytes
) -> bytes:
    """Binds a charge to its request: the analyst, the dataset, the key and the body."""
    return _REQUEST.digest(query_id, analyst_id, dataset_id, key.encode(), body_hash, request)


def ending_digest(
    query_id: bytes,
    attempt: int,
    dataset_version: int,
    answer_status: int,
    answer_hash: bytes,
    settled_us: int,
    release_us: int,
    working: tuple[int, int] | None = None,
) -> bytes:
    """Binds an ending to its attempt, version, answer and release instant.

    ``working``: when the attempt had begun and until when it held the query, in microseconds;
    None only in ledgers of before.
    """
    ended = (
        *(query_id, attempt, dataset_version, answer_status, answer_hash),
        *(settled_us, release_us),
    )
    if working is None:
        return _ENDING.digest(*ended)
    return _ENDING_OF_ATTEMPT.digest(*ended, *working)


def release_subject(query_id: bytes, dataset_version: int, lease_until: int) -> bytes:
    """Binds a release to the version that was not opened and to the end of the lease."""
    return _RELEASE.digest(query_id, dataset_version, lease_until)
