"""Die between two statements: ``FAILPOINT`` says before which step the process is killed.

A step is a statement, a commit, or the moment after one, whatever it is run by: a number is that of
a step, counted from the start, and a text stands in the statement. The service never imports this
module: a test's own process asks for it.
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
    """Count the steps of this process from now on, and die at the one in FAILPOINT."""
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
    event.listen(database.engine, "before_cursor_execute", lambda *told: steps.step(told[2]))


class Steps:
    """Waits for the step at which the process dies."""

    def __init__(self, name: str) -> None:
        self._text = "" if name.isdecimal() else name
        self._left = int(name) if name.isdecimal() else 0
        self._lock = threading.Lock()

    def step(self, sql: str) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0 or (self._text and self._text in sql):
                os.kill(os.getpid(), signal.SIGKILL)
