"""The way of one paid question: one call, one answer, one charge.

Every attempt carries the same idempotency key, so the service charges once however often it is
asked: after a lost connection, while it is busy, and after it was killed and started again. The
repeated question, not the look at its state, is what makes a restarted service finish it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from privypurse.connection import Connection
from privypurse.problems import PurseError, StillRunning, Unanswered
from privypurse.progress import Progress

PATH = "/v1/queries"
#: Seconds that the service is asked to wait before it says "running": short where a person looks.
QUIET_WAIT, SHOWN_WAIT = 20.0, 1.0


def ask(
    connection: Connection,
    body: Mapping[str, Any],
    *,
    key: str | None,
    timeout: float | None,
    progress: Progress,
) -> Any:
    """The reply to a question that was answered. Raises: Problem, Unreachable, Unanswered."""
    key = key or uuid.uuid4().hex
    try:
        return _answered(connection, body, key, timeout, progress)
    except PurseError as error:
        error.idempotency_key = key
        raise


def _answered(
    connection: Connection,
    body: Mapping[str, Any],
    key: str,
    timeout: float | None,
    progress: Progress,
) -> Any:
    started = time.monotonic()

    def preference() -> dict[str, str]:
        wait = SHOWN_WAIT if progress.shown else QUIET_WAIT
        if timeout is not None:
            wait = min(wait, max(0.0, started + timeout - time.monotonic()))
        return {"Prefer": f"wait={int(wait)}"}

    while True:
        try:
            headers = {"Idempotency-Key": key, **preference()}
            reply = connection.send("POST", PATH, json=body, headers=headers)
            if reply.status_code != 202:
                return reply.json()
            query_id = str(reply.json()["id"])
        except StillRunning as running:
            query_id = str(running.id)
        if timeout is not None and time.monotonic() >= started + timeout:
            raise Unanswered(query_id)
        looked = time.monotonic()
        state = connection.json("GET", f"{PATH}/{query_id}", headers=preference())
        if state["status"] == "answered":
            return state
        if state["status"] == "running":
            progress.seconds(state["elapsed"], state["expected"])
            # Something in between may not pass the wish to wait on.
            time.sleep(max(0.0, looked + SHOWN_WAIT - time.monotonic()))
        # Otherwise it failed or was cancelled: its key says so, in full.
