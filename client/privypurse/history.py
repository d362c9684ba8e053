"""Queries as the service lists them, and the answers that it stored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from privypurse.accounts import Dataset
from privypurse.amounts import Charge
from privypurse.answers.answer import Answer
from privypurse.connection import Connection, part
from privypurse.kinds import READERS
from privypurse.problems import NoAnswer, Unanswered
from privypurse.queries import PATH, QUIET_WAIT


@dataclass(frozen=True)
class PastQuery:
    """A query of before; ``query`` is its whole request. Owners and auditors see no answers.

    ``question``: the query as one plain sentence. ``released``: when its answer left, or None.
    """

    id: str
    status: str
    analyst: str
    dataset: str
    dataset_version: int
    question: str | None
    charge: Charge
    created: datetime
    released: datetime | None
    query: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        plain = ("id", "status", "analyst", "dataset", "dataset_version", "query")
        released = body["released"]
        return cls(
            **{name: body[name] for name in plain},
            question=body.get("question"),
            charge=Charge.of(body["charge"]),
            created=datetime.fromisoformat(body["created"]),
            released=None if released is None else datetime.fromisoformat(released),
        )


def stored_answer(connection: Connection, query_id: str, timeout: float | None) -> Answer:
    """The stored answer of a query, after waiting for one that runs; free.

    Raises: Unanswered after ``timeout`` seconds; NoAnswer if it failed or was cancelled, and for
    callers who may not see it; NotFound.
    """
    started = time.monotonic()
    path = f"{PATH}/{part(query_id)}"
    while True:
        wait = QUIET_WAIT
        if timeout is not None:
            wait = max(0.0, min(wait, started + timeout - time.monotonic()))
        reply = connection.json("GET", path, headers={"Prefer": f"wait={int(wait)}"})
        if reply["status"] != "running":
            break
        if timeout is not None and time.monotonic() >= started + timeout:
            raise Unanswered(query_id)
        time.sleep(0.5)
    if "answer" not in reply:
        raise NoAnswer(query_id, reply["status"])
    read, is_described = READERS[reply["query"]["kind"]]
    columns = {}
    if is_described:
        dataset = connection.json("GET", f"/v1/datasets/{part(reply['dataset'])}")
        columns = Dataset.of(dataset).columns
    answer: Answer = read(reply, columns)
    return answer
