"""The fixtures of databases: these tests run on SQLite and on PostgreSQL."""

from tests.support.databases import (
    database,
    empty_url,
    kind,
    migrated,
    migrated_file,
    postgresql,
    url,
    world,
)

__all__ = [
    "database",
    "empty_url",
    "kind",
    "migrated",
    "migrated_file",
    "postgresql",
    "url",
    "world",
]
