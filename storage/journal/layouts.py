"""The byte encodings under the hash chains: the ledger writes and verifies by the same functions.

Danger: the name and the bytes of an encoding must never change, or ledgers written with it no
longer verify. A new encoding gets a new name, and the old encoding is kept.

head₀ is 32 zero bytes; headₙ = SHA-256(headₙ₋₁ ‖ digest of entry n). A digest is SHA-256 over the
name of the encoding and its fields, each with its length before it, so no two entries share an
encoding. An entry's sequence number is its position in the chain. The facts of a stream of the
journal form a chain in the same way.

An entry's *subject* is a digest of facts that other tables hold: for a genesis the analyst and the
dataset of the account, for a charge its request, for a release the attempt that ended.
``ending_digest`` is the digest of a query's end.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from hashlib import sha256
from struct import Struct
from typing import Any

EMPTY_HEAD = bytes(32)
_NUMBER = Struct(">q")


class EntryKind(IntEnum):
    """The kinds of entries. A genesis opens an account and sets its limit.

    Charges, releases and unfreezes change the sum of charges; a limit change changes the limit. An
    unfreeze adds the charges that were lost when an old backup was restored.
    """

    CHARGE = 1
    RELEASE = 2
    LIMIT_CHANGE = 3
    FREEZE = 4
    UNFREEZE = 5
    GENESIS = 6


class Layout:
    """One encoding. One call packs all fields, because a verification packs millions of entries.

    In ``fields``, as in the module ``struct``, ``q`` is a signed 64-bit number and ``16s`` is 16
    bytes. Any values after these fields are bytes of any length.
    """

    def __init__(self, name: bytes, fields: str) -> None:
        formats = [f"{len(name)}s", *fields.split()]
        self._struct = Struct(">" + "".join(f"I{field}" for field in formats))
        self._fields = len(formats) - 1
        self._template: list[Any] = [0] * (2 * len(formats))
        self._template[::2] = [Struct(f">{field}").size for field in formats]
        self._template[1] = name
        self._first = Struct(f">I{formats[0]}I").size

    def packed(self, *values: Any) -> bytes:
        """The values of all fields, in their order."""
        arguments = self._template.copy()
        arguments[3::2] = values[: self._fields]
        packed = self._struct.pack(*arguments)
        for value in values[self._fields :]:
            packed += len(value).to_bytes(4, "big") + value
        return packed

    def digest(self, *values: Any) -> bytes:
        """The digest of the values of all fields, in their order; 32 bytes."""
        return sha256(self.packed(*values)).digest()

    def around_first(self, *values: Any) -> tuple[bytes, bytes]:
        """The bytes before and after the first field, a number, of these values of the others."""
        packed = self.packed(0, *values)
        return packed[: self._first], packed[self._first + _NUMBER.size :]


#: Two encodings of an entry: account, kind, query id, actor, ε, δ, moment; the second also has a
#: subject. Each depends on the length of the query id in bytes, 0 for an entry without a query.
_ENTRY, _ENTRY_WITH_SUBJECT = (
    {length: Layout(name, f"q q {length}s q q q q") for length in (0, 16)}
    for name in (b"privypurse entry 1", b"privypurse entry 2")
)
#: The encoding of entries that count in ρ: account, kind, query id, actor, ε, δ, ρ, number of
#: releases without a finite ε, moment; and the subject, empty if there is none.
_ENTRY_IN_RHO = {
    length: Layout(b"privypurse entry 3", f"q q {length}s q q q q q q") for length in (0, 16)
}
#: The encoding of entries that change a limit. The change of δ_c takes the place of the number of
#: releases. After it comes the change of the permission of releases without a finite ε: 1, 0 or −1.
_ENTRY_OF_LIMIT = {
    length: Layout(b"privypurse entry 4", f"q q {length}s q q q q q q q") for length in (0, 16)
}
#: The subject of an account's first entry, in two encodings: its rank (the number of its kind, such
#: as the cap of a dataset) and the ids of its dataset and analyst, where 0 stands for all. The
#: second encoding, for the account of an API key, has the id of the key as well.
_ACCOUNT = Layout(b"privypurse account 1", "q q q").digest
_KEY_ACCOUNT = Layout(b"privypurse key account 1", "q q q").digest
#: The subject of a charge: the ids of the query, analyst and dataset; the idempotency key, the hash
#: of the body, and the request.
request_subject = Layout(b"privypurse request 1", "16s q q").digest
#: The subject of a release: query id, version of the dataset, end of the lease in microseconds.
release_subject = Layout(b"privypurse release 1", "16s q q").digest
#: The end of a query: its id, attempt, version of the dataset, status, hash of the answer; then
#: moments in microseconds: when it was settled, when its answer may leave, when the attempt began
#: and when its lease ends.
ending_digest = Layout(b"privypurse ending 2", "16s q q q 32s q q q q").digest
#: The encoding of the end of a query in ledgers of earlier versions. It lacks the moments when the
#: attempt began and when its lease ends.
early_ending_digest = Layout(b"privypurse ending 1", "16s q q q 32s q q").digest

#: A fact of the journal: its stream, moment, kind and actor; then its subject and its text.
fact_digest = Layout(b"privypurse fact 1", "q q q q").digest


def account_subject(rank: int, dataset_id: int, analyst_id: int, key_id: str = "") -> bytes:
    """The subject of the entry that opens an account; ``key_id``: "" for all keys."""
    if key_id:
        return _KEY_ACCOUNT(rank, dataset_id, analyst_id, key_id.encode())
    return _ACCOUNT(rank, dataset_id, analyst_id)


def salted_digest(salt: bytes, content: bytes) -> bytes:
    """The digest of private bytes, 32 bytes; ``salt`` is random and kept only beside them.

    Danger: without a salt, everyone who may guess the bytes can confirm the guess by a published
    head.
    """
    return sha256(salt + content).digest()


def next_head(head: bytes, digest: bytes) -> bytes:
    """The head of a chain after an entry with this digest."""
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
    """The digest of one entry, 32 bytes; ``amounts`` are signed.

    They are one per measure, or ε and δ alone in an entry that is not counted in ρ. An entry that
    changes a limit has the change of its permission after them.
    """
    layout, fields = _layout_of_entry(kind, query_id, actor, amounts, at_us, subject)
    return layout.digest(account_id, *fields)


def entry_digests(
    kind: int,
    query_id: bytes | None,
    actor: int,
    amounts: Sequence[int],
    at_us: int,
    subject: bytes | None = None,
) -> Callable[[int], bytes]:
    """The function from an account's id to the digest of an entry that only differs by that id.

    A charge makes such an entry on several accounts, and its other fields are packed once.
    """
    layout, fields = _layout_of_entry(kind, query_id, actor, amounts, at_us, subject)
    before, after = layout.around_first(*fields)
    return lambda account_id: sha256(before + _NUMBER.pack(account_id) + after).digest()


def _layout_of_entry(
    kind: int,
    query_id: bytes | None,
    actor: int,
    amounts: Sequence[int],
    at_us: int,
    subject: bytes | None,
) -> tuple[Layout, tuple[Any, ...]]:
    """The layout of an entry, and the values of its fields after the account's id."""
    id = query_id or b""
    fields = (kind, id, actor, *amounts, at_us)
    if len(amounts) > 4:
        return _ENTRY_OF_LIMIT[len(id)], (*fields, subject or b"")
    if len(amounts) > 2:
        return _ENTRY_IN_RHO[len(id)], (*fields, subject or b"")
    if subject is None:
        return _ENTRY[len(id)], fields
    return _ENTRY_WITH_SUBJECT[len(id)], (*fields, subject)
