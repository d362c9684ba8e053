"""The hash chain: one encoding per entry, and every field is in it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from storage.journal.layouts import (
    EntryKind,
    account_subject,
    early_ending_digest,
    ending_digest,
    entry_digest,
    entry_digests,
    next_head,
    release_subject,
    request_subject,
)

numbers = st.integers(-(2**63), 2**63 - 1)
entries = st.tuples(
    numbers,
    st.sampled_from(EntryKind),
    st.none() | st.binary(min_size=16, max_size=16),
    numbers,
    st.tuples(numbers, numbers),
    numbers,
    st.none() | st.binary(min_size=32, max_size=32),
)


def test_the_encoding_is_fixed() -> None:
    """A change of the encoding must come with another name: stored digests stay checkable."""
    id, moment = UUID(int=5).bytes, 1_700_000_000_000_000
    amounts = (500_000_000, 1)
    numbers = [value.to_bytes(8, "big") for value in (7, 1, 3, *amounts, moment)]
    account, kind, actor, *rest = numbers
    for query, stored in ((id, id), (None, b"")):
        fields = [b"privypurse entry 1", account, kind, stored, actor, *rest]
        digest = entry_digest(7, EntryKind.CHARGE, query, 3, amounts, moment)
        assert digest == encoded(*fields)
        fields[0] = b"privypurse entry 2"
        digest = entry_digest(7, EntryKind.CHARGE, query, 3, amounts, moment, bytes(range(32)))
        assert digest == encoded(*fields, bytes(range(32)))
    assert next_head(bytes(32), digest) == sha256(bytes(32) + digest).digest()


@given(left=entries, right=entries)
def test_different_entries_have_different_digests(left: Any, right: Any) -> None:
    assert (entry_digest(*left) == entry_digest(*right)) == (left == right)


@given(entry=entries, field=st.integers(0, 6), other=entries)
def test_every_field_is_bound(entry: Any, field: int, other: Any) -> None:
    changed = (*entry[:field], other[field], *entry[field + 1 :])
    assert (entry_digest(*entry) == entry_digest(*changed)) == (entry == changed)


@given(entry=entries, more=st.sampled_from([0, 2, 3]), number=numbers, accounts=st.lists(numbers))
def test_entries_of_one_cause_have_the_digests_of_separate_ones(
    entry: Any, more: int, number: int, accounts: list[int]
) -> None:
    own, kind, id, actor, amounts, at_us, subject = entry
    # An entry of the ledger has two amounts if its account does not count in ρ, and four if it
    # does. An entry that changes a limit in ρ has five.
    fields = (kind, id, actor, (*amounts, *[number] * more), at_us, subject)
    digest_of = entry_digests(*fields)
    for account in (own, *accounts):
        assert digest_of(account) == entry_digest(account, *fields)


def test_the_encodings_of_subjects_are_fixed() -> None:
    id = UUID(int=5).bytes
    two, zero, three = (value.to_bytes(8, "big") for value in (2, 0, 3))
    assert account_subject(2, 0, 3) == encoded(b"privypurse account 1", two, zero, three)
    request = (id, 2, 3, "key·".encode(), bytes(32), b"{}")
    fields = (id, two, three, "key·".encode(), bytes(32), b"{}")
    assert request_subject(*request) == encoded(b"privypurse request 1", *fields)


def test_the_encodings_of_ends_are_fixed() -> None:
    id, hash, number = UUID(int=5).bytes, bytes(range(32)), 1_700_000_000_000_000
    numbers = [value.to_bytes(8, "big") for value in (2, 1, 201, number, number + 1, 7, 8)]
    attempt, version, status, settled, release, began, lease = numbers
    ending = [b"privypurse ending 1", id, attempt, version, status, hash, settled, release]
    existing = (id, 2, 1, 201, hash, number, number + 1)
    assert early_ending_digest(*existing) == encoded(*ending)
    ending[0] = b"privypurse ending 2"
    assert ending_digest(*existing, 7, 8) == encoded(*ending, began, lease)
    assert release_subject(id, 1, 8) == encoded(b"privypurse release 1", id, version, lease)


def encoded(*fields: bytes) -> bytes:
    return sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).digest()
