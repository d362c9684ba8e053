"""A ledger never goes back, and neither does its schema."""

from __future__ import annotations

from typing import NoReturn

from storage.errors import UnusableDatabase


def refuse_downgrade(reason: str) -> NoReturn:
    """What every migration does when it is asked to undo itself."""
    raise UnusableDatabase(
        f"a schema is never downgraded: {reason}; "
        "restore a backup that the older version made instead"
    )
