"""Column types with the same meaning on SQLite and PostgreSQL.

SQLite's STRICT tables admit only INTEGER, TEXT and BLOB, so each type maps to one of these.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, SmallInteger, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator, TypeEngine

#: The type of 64-bit whole numbers, such as ids, amounts and microseconds.
Big = BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
Int = Integer().with_variant(sqlite.INTEGER(), "sqlite")
Small = SmallInteger().with_variant(sqlite.INTEGER(), "sqlite")
String = Text()
Bytes = LargeBinary()


class UuidBytes(TypeDecorator[UUID]):
    """A UUID: native on PostgreSQL, 16 bytes on SQLite."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.UUID(as_uuid=True))
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> Any:
        return value.bytes if value is not None and dialect.name != "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> UUID | None:  # noqa: ARG002
        return UUID(bytes=value) if isinstance(value, bytes) else value
