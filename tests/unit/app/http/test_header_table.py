"""The table finds what the framework's search of the list finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from app.http.headers import HeaderTable, QuickRequest

NAMES = ("accept", "authorization", "idempotency-key", "prefer")
HEADERS = st.lists(
    st.tuples(st.sampled_from([name.encode() for name in NAMES]), st.binary(max_size=4)), max_size=8
)


@given(HEADERS)
def test_looks_up_as_the_framework_does(headers: list[tuple[bytes, bytes]]) -> None:
    scope = {"type": "http", "headers": headers}
    table, searched = HeaderTable(scope), Headers(scope=scope)
    for name in (*NAMES, "Idempotency-Key", "missing"):
        assert table.get(name) == searched.get(name)
        assert table.get(name, "otherwise") == searched.get(name, "otherwise")
    assert table.items() == searched.items()


def test_a_request_makes_its_table_once() -> None:
    request = QuickRequest({"type": "http", "headers": [(b"accept", b"a"), (b"accept", b"b")]})
    assert request.headers is request.headers
    assert request.headers.get("Accept") == "a"
