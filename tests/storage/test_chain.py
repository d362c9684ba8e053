"""The hash chain: one encoding per entry, and every field is in it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from storage.chain import ENCODING, EntryKind, entry_digest, next_head

numbers = st.integers(-(2**63), 2**63 - 1)
entries = st.tuples(
    numbers,
    st.sampled_from(EntryKind),
    st.none() | st.uuids(),
    numbers,
    numbers,
    numbers,
    numbers,
)


def test_the_encoding_is_fixed() -> None:
    """A change of the encoding must come with another name: stored digests stay checkable."""
    digest = entry_digest(
        7, EntryKind.CHARGE, UUID(int=5), 3, 500_000_000, 1, 1_700_000_000_000_000
    )
    fields = [
        b"privypurse entry 1",
        (7).to_bytes(8, "big"),
        (1).to_bytes(8, "big"),
        bytes(15) + b"\x05",
        (3).to_bytes(8, "big"),
        (500_000_000).to_bytes(8, "big"),
        (1).to_bytes(8, "big"),
        (1_700_000_000_000_000).to_bytes(8, "big"),
    ]
    encoded = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    assert digest == sha256(encoded).digest()
    assert fields[0] == ENCODING
    assert next_head(bytes(32), digest) == sha256(bytes(32) + digest).digest()


@given(left=entries, right=entries)
def test_different_entries_have_different_digests(left: Any, right: Any) -> None:
    assert (entry_digest(*left) == entry_digest(*right)) == (left == right)


@given(entry=entries, field=st.integers(0, 6), other=entries)
def test_every_field_is_bound(entry: Any, field: int, other: Any) -> None:
    changed = (*entry[:field], other[field], *entry[field + 1 :])
    assert (entry_digest(*entry) == entry_digest(*changed)) == (entry == changed)
