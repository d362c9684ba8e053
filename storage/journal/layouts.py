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

    def __init__(self, name: bytes, fields: str) -> None:
        formats = [f"{len(name)}s", *fields.split()]
        self._struct = Struct(">" + "".join(f"I{field}" for field in formats))
        self._fields = len(formats) - 1
        self._template: list[Any] = [0] * (2 * len(formats))
        self._template[::2] = [Struct(f">{field}").size for field in formats]
        self._template[1] = name

    def digest(self, *values: Any) -> bytes:
        """The digest of the values of all fields, in their order; 32 bytes."""
        arguments = self._template.copy()
        arguments[3::2] = values[: self._fields]
        packed = self._struct.pack(*arguments)
        for value in values[self._fields :]:
            packed += len(value).to_bytes(4, "big") + value
        return sha256(packed).digest()


#: By the length of the query's id, which is 0 where no query is named: account, kind, query,
#: actor, ε, δ, moment. The second encoding has a subject besides.
_ENTRY, _ENTRY_WITH_SUBJECT = (
    {length: Layout(name, f"q q {length}s q q q q") for length in (0, 16)}
    for name in (b"privypurse entry 1", b"privypurse entry 2")
)
#: Binds a genesis to its account: rank, dataset, analyst; 0 stands for all.
account_subject = Layout(b"privypurse account 1", "q q q").digest
#: Binds a charge to its request: query, analyst, dataset; key, digest of the body, request.
request_subject = Layout(b"privypurse request 1", "16s q q").digest
#: Binds a release to what was not opened: query, version, end of the lease.
release_subject = Layout(b"privypurse release 1", "16s q q").digest
#: Binds an ending: query, attempt, version, status, digest of the answer, settled, released, and
#: when the attempt had begun and until when it held the query, all in microseconds.
ending_digest = Layout(b"privypurse ending 2", "16s q q q 32s q q q q").digest
#: The same in ledgers of before, without the last two.
early_ending_digest = Layout(b"privypurse ending 1", "16s q q q 32s q q").digest


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
    id = query_id or b""
    fields = (account_id, kind, id, actor, *amounts, at_us)
    if subject is None:
        return _ENTRY[len(id)].digest(*fields)
    return _ENTRY_WITH_SUBJECT[len(id)].digest(*fields, subject)
