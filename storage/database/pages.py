"""Pages of a list, newest first, with opaque cursors that stay valid while rows are added.

A cursor holds the sort key of the last item shown, so a page never repeats or skips a row
because newer ones arrived in between.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import ColumnClause, ColumnElement, Row, Select, literal, or_, true, tuple_

from storage.database.database import Database
from storage.database.types import UuidBytes
from storage.errors import InvalidCursor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list; ``next`` is the cursor of those that follow, None at the end."""

    items: list[T]
    next: str | None


def page_of(
    database: Database,
    statement: Select[Any],
    key: Sequence[ColumnClause[Any]],
    limit: int,
    cursor: str | None,
    item: Callable[[Row[Any]], T],
) -> Page[T]:
    """A page of what ``statement`` selects, as items, from the largest ``key`` down.

    ``key``: selected columns that order the rows and are unique together. Raises: InvalidCursor.
    """
    if cursor is not None:
        statement = statement.where(tuple_(*key) < tuple_(*_decoded(cursor, key)))
    statement = statement.order_by(*(column.desc() for column in key)).limit(limit + 1)
    with database.read() as connection:
        rows = connection.execute(statement).all()
    listed = rows[:limit]
    # One more row than ``limit`` was selected: if it exists, another page follows.
    has_more = len(rows) > limit and listed
    following = _encoded([getattr(listed[-1], column.name) for column in key]) if has_more else None
    return Page([item(row) for row in listed], following)


def read_as(kind: type[T], row: Row[Any], /, **converted: Any) -> T:
    """Makes a dataclass: its fields are ``converted``, and all others are columns of the row."""
    named = {one.name for one in fields(kind)} - converted.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in named}, **converted)


def key_in(cursor: str | None, key: Sequence[ColumnClause[Any]]) -> list[ColumnElement[Any]] | None:
    """The sort key in a cursor; None for the first page. Raises: InvalidCursor."""
    return None if cursor is None else _decoded(cursor, key)


def equal(values: Mapping[Any, Any]) -> list[ColumnElement[bool]]:
    """The conditions that columns have these values; None stands for any value."""
    return [column == value for column, value in values.items() if value is not None]


def either(values: Mapping[Any, Any]) -> ColumnElement[bool]:
    """The condition that one of these columns has its value; true when all values are None."""
    conditions = equal(values)
    return or_(*conditions) if conditions else true()


def _encoded(values: Sequence[Any]) -> str:
    text = json.dumps(values, separators=(",", ":"), default=lambda id: id.hex)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str, key: Sequence[ColumnElement[Any]]) -> list[ColumnElement[Any]]:
    """The sort key in a cursor, each part of the type of its column; InvalidCursor otherwise."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(parts, list):
            raise ValueError
        return [_value(part, column) for part, column in zip(parts, key, strict=True)]
    except (ValueError, RecursionError):
        raise InvalidCursor("not a cursor of this list") from None


def _value(part: Any, column: ColumnElement[Any]) -> ColumnElement[Any]:
    if isinstance(column.type, UuidBytes) and isinstance(part, str):
        return literal(UUID(hex=part), column.type)
    if isinstance(column.type, UuidBytes) or type(part) is not int or not -(2**63) <= part < 2**63:
        raise ValueError
    return literal(part, column.type)
