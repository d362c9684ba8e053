"""Kills the process between two statements: ``FAILPOINT`` names the step before which it dies.

A step is a statement, a commit, or the moment after a commit. ``FAILPOINT`` is the number of a
step, counted from the start, or a text that the statement contains. Only processes of tests
import this module, never the service.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from sqlalchemy import event

from storage.database import database as database_module
from storage.database import statements
from storage.database.database import Database


def install(database: Database) -> None:
    """Count the steps of this process from now on, and kill it at the step of FAILPOINT."""
    name = os.environ.get("FAILPOINT", "")
    if not name:
        return
    steps = Steps(name)
    execute, commit = statements.executed, database_module._commit

    def executed(driver: Any, sql: str, arguments: Any = ()) -> Any:
        steps.step(sql)
        return execute(driver, sql, arguments)

    def committed(transaction: Any) -> None:
        steps.step("COMMIT")
        commit(transaction)
        steps.step("")

    statements.executed = executed
    database_module._commit = committed
    event.listen(database.engine, "before_cursor_execute", lambda *args: steps.step(args[2]))


class Steps:
    """Counts steps and kills the process at one of them."""

    def __init__(self, name: str) -> None:
        self._text = "" if name.isdecimal() else name
        self._remaining = int(name) if name.isdecimal() else 0
        self._lock = threading.Lock()

    def step(self, sql: str) -> None:
        with self._lock:
            self._remaining -= 1
            if self._remaining == 0 or (self._text and self._text in sql):
                os.kill(os.getpid(), signal.SIGKILL)
