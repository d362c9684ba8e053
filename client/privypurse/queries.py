"""Sends one paid query until it is answered: one call, one answer, one charge.

All attempts carry the same idempotency key, so the service charges once. This holds after a lost
connection, while the service is busy, and after it was killed and started again. A restarted
service resumes the query only when the query is sent again; reading its state is not enough.
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
#: Seconds that the service waits before it replies "running", without and with a progress bar. The
#: shorter wait keeps the bar moving.
QUIET_WAIT, PROGRESS_WAIT = 20.0, 1.0


def ask(
    connection: Connection,
    body: Mapping[str, Any],
    *,
    key: str | None,
    timeout: float | None,
    progress: Progress,
) -> Any:
    """Send a query until it is answered. Raises: Problem, Unreachable, Unanswered."""
    key = key or uuid.uuid4().hex
    try:
        return _answer(connection, body, key, timeout, progress)
    except PurseError as error:
        error.idempotency_key = key
        raise


def _answer(
    connection: Connection,
    body: Mapping[str, Any],
    key: str,
    timeout: float | None,
    progress: Progress,
) -> Any:
    started = time.monotonic()

    def preference() -> dict[str, str]:
        wait = PROGRESS_WAIT if progress.visible else QUIET_WAIT
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
        sent_at = time.monotonic()
        state = connection.json("GET", f"{PATH}/{query_id}", headers=preference())
        if state["status"] == "answered":
            return state
        if state["status"] == "running":
            progress.seconds(state["elapsed"], state["expected"])
            # A proxy may drop the header ``Prefer``; then this pause limits the rate of requests.
            time.sleep(max(0.0, sent_at + PROGRESS_WAIT - time.monotonic()))
        # The query failed or was cancelled. The loop sends its idempotency key again, and the
        # service replies with the stored error in full.
