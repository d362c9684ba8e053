"""The hash chain of an account: every entry is bound to all that came before it.

head₀ is 32 zero bytes; headₙ = SHA-256(headₙ₋₁ ‖ digest of entry n). The digest is SHA-256 over a
binary encoding in which every field carries its length, so no two entries share an encoding. Its
place in the chain is what says an entry's sequence number.

An entry's *subject* binds what its own columns only point at: a genesis whom and what the account
is for, a charge the request it paid for, a release the attempt that was given up.
``ending_digest`` does the same for how a query ended.
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import sha256
from struct import Struct
from uuid import UUID

#: An encoding never changes; another one gets another name, so that old digests stay checkable.
ENCODING = b"privypurse entry 1"
WITH_SUBJECT = b"privypurse entry 2"
ACCOUNT = b"privypurse account 1"
REQUEST = b"privypurse request 1"
ENDING = b"privypurse ending 1"
ENDING_OF_ATTEMPT = b"privypurse ending 2"
RELEASE = b"privypurse release 1"

EMPTY_HEAD = bytes(32)
#: Its length and the number itself, signed, most significant byte first.
_NUMBER = Struct(">Iq")


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


def next_head(head: bytes, digest: bytes) -> bytes:
    """The head after an entry; on PostgreSQL the same formula stands inside the statement."""
    return sha256(head + digest).digest()


def entry_digest(
    account_id: int,
    kind: EntryKind,
    query_id: UUID | None,
    actor: int,
    epsilon_nano: int,
    delta_atto: int,
    at_us: int,
    subject: bytes | None = None,
) -> bytes:
    """The digest of one entry, 32 bytes; amounts are signed. ``subject``: 32 bytes, or none."""
    return _digest(
        _bytes(ENCODING if subject is None else WITH_SUBJECT),
        _number(account_id),
        _number(kind),
        _bytes(query_id.bytes if query_id is not None else b""),
        _number(actor),
        _number(epsilon_nano),
        _number(delta_atto),
        _number(at_us),
        b"" if subject is None else _bytes(subject),
    )


def account_subject(rank: int, dataset_id: int, analyst_id: int) -> bytes:
    """What a genesis entry is about: whom and what the account is for, 0 standing for all."""
    return _digest(_bytes(ACCOUNT), _number(rank), _number(dataset_id), _number(analyst_id))


def request_subject(
    query_id: UUID, analyst_id: int, dataset_id: int, key: str, body_hash: bytes, request: bytes
) -> bytes:
    """What a charge is about: who asked what of which dataset, under which key."""
    return _digest(
        _bytes(REQUEST),
        _bytes(query_id.bytes),
        _number(analyst_id),
        _number(dataset_id),
        _bytes(key.encode()),
        _bytes(body_hash),
        _bytes(request),
    )


def ending_digest(
    query_id: UUID,
    attempt: int,
    dataset_version: int,
    answer_status: int,
    answer_hash: bytes,
    settled_us: int,
    release_us: int,
    working: tuple[int, int] | None = None,
) -> bytes:
    """How a query ended: which attempt, on which records, with which answer, seen from when on.

    ``working``: when the attempt had begun and until when it held the query, microseconds.
    """
    return _digest(
        _bytes(ENDING if working is None else ENDING_OF_ATTEMPT),
        _bytes(query_id.bytes),
        _number(attempt),
        _number(dataset_version),
        _number(answer_status),
        _bytes(answer_hash),
        _number(settled_us),
        _number(release_us),
        *map(_number, working or ()),
    )


def release_subject(query_id: UUID, dataset_version: int, lease_until: int) -> bytes:
    """What a release is about: which records were not opened, and until when they might have."""
    return _digest(
        _bytes(RELEASE), _bytes(query_id.bytes), _number(dataset_version), _number(lease_until)
    )


def _digest(*fields: bytes) -> bytes:
    """The digest of fields as ``_bytes`` and ``_number`` encode them."""
    return sha256(b"".join(fields)).digest()


def _bytes(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def _number(value: int) -> bytes:
    return _NUMBER.pack(8, value)
