"""How much SQLite does for a statement, by its own instructions: the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from storage.database.database import Database


def instructions(database: Database, call: Callable[[], object]) -> int:
    """The instructions that SQLite runs in ``call`` for connections of the pool."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    def begin(driver: Any, *_: object) -> None:
        driver.set_progress_handler(tick, 1)

    def end(driver: Any, *_: object) -> None:
        driver.set_progress_handler(None, 1)

    event.listen(database.engine, "checkout", begin)
    event.listen(database.engine, "checkin", end)
    try:
        call()
    finally:
        event.remove(database.engine, "checkout", begin)
        event.remove(database.engine, "checkin", end)
    assert count > 0, "nothing was read"
    return count
