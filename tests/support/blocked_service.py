"""The service, whose selections wait before their answer while the file ``BLOCKED_BY`` exists.

A test decides in this way how long a query runs, however fast or busy the machine is.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from app.cli import main
from app.demo.service import ServiceProcess
from app.engine import attempts
from app.queries.parts.scored_selection import ScoredSelection


class BlockedService(ServiceProcess):
    """Its selections wait from ``block`` to ``unblock``, also after another start."""

    MODULE = "tests.support.blocked_service"

    def __init__(self, data: Path, **settings: str) -> None:
        self._file = data.parent / "blocked"
        super().__init__(data, **settings, BLOCKED_BY=str(self._file))

    def block(self) -> None:
        self._file.touch()

    def unblock(self) -> None:
        self._file.unlink()


def _wait_in_selections() -> None:
    compute, file = ScoredSelection.compute, Path(os.environ["BLOCKED_BY"])

    def waiting(self: ScoredSelection, context: Any) -> Any:
        while file.exists():
            time.sleep(0.01)
        return compute(self, context)

    ScoredSelection.compute = waiting  # type: ignore[method-assign]
    # A cost limit below 0 sends every query to a thread. On the event loop the wait would block all
    # other requests.
    attempts.INLINE = -1.0


if __name__ == "__main__":
    _wait_in_selections()
    main()
