"""Pages of a list, newest first, with opaque cursors that stay valid while rows are added.

A cursor holds the sort key of the last item shown, so a page never repeats or skips a row
because newer ones arrived in between.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from storage.errors import InvalidCursor

T = TypeVar("T")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list; ``next`` is the cursor of those that follow, None at the end."""

    items: list[T]
    next: str | None


def encode_cursor(*key: int | str) -> str:
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *types: type) -> list[Any]:
    """The sort key in a cursor, each part of its type in ``types``; InvalidCursor otherwise."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise InvalidCursor("not a cursor") from None
    if not isinstance(key, list) or [type(part) for part in key] != list(types):
        raise InvalidCursor("not a cursor of this list")
    if any(isinstance(part, int) and not -(2**63) <= part < 2**63 for part in key):
        raise InvalidCursor("not a cursor of this list")
    return key


def page_of(
    rows: Sequence[Row],
    limit: int,
    item: Callable[[Row], T],
    key: Callable[[Row], tuple[int | str, ...]],
) -> Page[T]:
    """A page from ``limit + 1`` selected rows: the extra one only says that more follow."""
    listed = rows[:limit]
    following = encode_cursor(*key(listed[-1])) if len(rows) > limit and listed else None
    return Page([item(row) for row in listed], following)
