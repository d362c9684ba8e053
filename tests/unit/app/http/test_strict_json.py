"""Ambiguous or hostile JSON is refused; everything RFC 8259 allows otherwise is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.contract.errors import InvalidRequest
from app.http.strict_json import MAX_DEPTH, parse

HOSTILE = {
    "nan": b'{"a": NaN}',
    "infinity": b'{"a": Infinity}',
    "minus infinity": b"-Infinity",
    "overflow": b"[1e999]",
    "negative overflow": b"[-1e999]",
    "repeated name": b'{"a": 1, "a": 2}',
    "repeated name, escaped": b'{"a": 1, "\\u0061": 2}',
    "lone surrogate": b'["\\ud800"]',
    "lone surrogate in a name": b'{"\\udfff": 1}',
    "surrogates in wrong order": b'"\\udc00\\ud800"',
    "raw surrogate": b'"\xed\xa0\x80"',
    "not UTF-8": b'"\xff"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "zero character": b'"\\u0000"',
    "deep arrays": b"[" * 100_000,
    "deep arrays, closed": b"[" * 5_000 + b"]" * 5_000,
    "deep objects": b'{"a":' * 200 + b"1" + b"}" * 200,
    "just too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "many arrays": b"[" + b"[]," * 1_000_000 + b"[]]",
    "long integer": b"1" * 5_000,
    "trailing": b"{} {}",
    "comment": b"{} // x",
    "single quotes": b"{'a': 1}",
    "empty": b"",
    "control character": b'"\x01"',
    "leading zero": b"01",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse(body)
    (error,) = refusal.value.errors
    assert error.type == "json_invalid"


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc\u20ac\U0001f600"), inner),
    max_leaves=20,
)


@given(value=values, ascii_only=st.booleans())
def test_proper_json_is_read_as_the_standard_library_reads_it(
    value: object, ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse(text.encode()) == json.loads(text)
