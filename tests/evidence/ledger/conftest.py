"""The fixtures of databases: tests here run on both kinds."""

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
