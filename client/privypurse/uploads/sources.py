"""Sources of records: places that the operator has named, from which owners pull tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

#: Seconds to wait for a pull: the service reads the whole table before it replies.
PULL_TIMEOUT = 3_700.0


@dataclass(frozen=True)
class Source:
    """A source; ``tables`` is None if it cannot be listed now. ``kind``: postgresql or parquet."""

    name: str
    kind: str
    tables: list[str] | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["name"], body["kind"], body["tables"])
