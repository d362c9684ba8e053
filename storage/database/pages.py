"""Pages of a list, newest first, with opaque cursors that stay valid while rows are added.

A cursor holds the sort key of the last item shown, so a page never repeats or skips a row
because newer ones arrived in between.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnClause,
    ColumnElement,
    Row,
    Select,
    bindparam,
    literal,
    or_,
    true,
    tuple_,
)

from storage.database.database import Database
from storage.database.statements import Hot, read_id
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
    before = key_in(cursor, key)
    if before is not None:
        statement = _before(statement, key, before)
    with database.read() as connection:
        rows = connection.execute(_ordered(statement, key).limit(limit + 1)).all()
    return _page(rows, key, limit, item)


class HotPages:
    """The pages of a list that is read often: as ``page_of``, by statements compiled once."""

    def __init__(self, statement: Select[Any], key: Sequence[ColumnClause[Any]]) -> None:
        whole = _ordered(statement, key).limit(bindparam("limit", type_=BigInteger))
        before = [bindparam(f"before_{column.name}", type_=column.type) for column in key]
        self._key, self._names = key, [one.key for one in before]
        self._first, self._next = Hot(whole), Hot(_before(whole, key, before))

    def page(
        self,
        database: Database,
        limit: int,
        cursor: str | None,
        item: Callable[[Any], T],
        **values: Any,
    ) -> Page[T]:
        """A page of the list with these values of its parameters. Raises: InvalidCursor."""
        statement = self._first
        if cursor is not None:
            parts = _decoded(cursor, self._key)
            statement, values = self._next, values | dict(zip(self._names, parts, strict=True))
        rows = database.look_up(statement, limit=limit + 1, **values)
        return _page(rows, self._key, limit, item)


def _ordered(statement: Select[Any], key: Sequence[ColumnClause[Any]]) -> Select[Any]:
    return statement.order_by(*(column.desc() for column in key))


def _before(
    statement: Select[Any], key: Sequence[ColumnClause[Any]], before: Sequence[ColumnElement[Any]]
) -> Select[Any]:
    return statement.where(tuple_(*key) < tuple_(*before))


def _page(
    rows: Sequence[Any], key: Sequence[ColumnClause[Any]], limit: int, item: Callable[[Any], T]
) -> Page[T]:
    """The first ``limit`` rows as items, and the cursor of those that follow."""
    listed = rows[:limit]
    # One more row than ``limit`` was selected: if it exists, another page follows.
    has_more = len(rows) > limit and listed
    following = _encoded([getattr(listed[-1], column.name) for column in key]) if has_more else None
    return Page([item(row) for row in listed], following)


def read_as(kind: type[T], row: Row[Any], /, **converted: Any) -> T:
    """Makes a dataclass: its fields are ``converted``, and all others are columns of the row."""
    for name in _names(kind):  # type: ignore[arg-type]
        if name not in converted:
            converted[name] = getattr(row, name)
    return kind(**converted)


@lru_cache
def _names(kind: Any) -> list[str]:
    """The names of the fields of a dataclass; listing them takes as long as reading a row."""
    return [one.name for one in fields(kind)]


def key_in(cursor: str | None, key: Sequence[ColumnClause[Any]]) -> list[ColumnElement[Any]] | None:
    """The sort key in a cursor; None for the first page. Raises: InvalidCursor."""
    if cursor is None:
        return None
    values = zip(_decoded(cursor, key), key, strict=True)
    return [literal(value, column.type) for value, column in values]


def equal(values: Mapping[Any, Any]) -> list[ColumnElement[bool]]:
    """The conditions that columns have these values; None stands for any value."""
    return [column == value for column, value in values.items() if value is not None]


def either(values: Mapping[Any, Any]) -> ColumnElement[bool]:
    """The condition that one of these columns has its value; true when all values are None."""
    conditions = equal(values)
    return or_(*conditions) if conditions else true()


def _encoded(values: Sequence[Any]) -> str:
    text = json.dumps(values, separators=(",", ":"), default=lambda id: read_id(id).hex)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str, key: Sequence[ColumnElement[Any]]) -> list[Any]:
    """The sort key in a cursor, each part of the type of its column; InvalidCursor otherwise."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(parts, list):
            raise ValueError
        return [_value(part, column) for part, column in zip(parts, key, strict=True)]
    except (ValueError, RecursionError):
        raise InvalidCursor("not a cursor of this list") from None


def _value(part: Any, column: ColumnElement[Any]) -> UUID | int:
    if isinstance(column.type, UuidBytes) and isinstance(part, str):
        return UUID(hex=part)
    if isinstance(column.type, UuidBytes) or type(part) is not int or not -(2**63) <= part < 2**63:
        raise ValueError
    return part
