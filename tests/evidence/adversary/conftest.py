"""A whole service in this process, for faults that its machine may have, and databases."""

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
from tests.support.service import application, begun, fast_lane, people, service, settings

__all__ = [
    "application",
    "begun",
    "database",
    "empty_url",
    "fast_lane",
    "kind",
    "migrated",
    "migrated_file",
    "people",
    "postgresql",
    "service",
    "settings",
    "url",
    "world",
]
