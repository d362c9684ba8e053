"""No request reads all that ever happened, unless it holds one of the few slots of long reads.

The effort of every GET route of the API is counted in SQLite's own instructions, before and after
a history of hundreds of queries and changes becomes twice as long. So the result is the same on
every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from fastapi import FastAPI
from sqlalchemy import Connection, event, insert, select, update

from app.dashboard.pages import Page
from app.http.openapi import routes_of
from app.usecases import certificates
from app.usecases.services import Services
from storage.database.database import Database
from storage.database.tables import budget_account, entry, journal, query
from storage.journal.facts import FactKind, canonical
from tests.support.service import PEOPLE, Service

QUERIES = 300
#: ``MOST``: the factor by which the database instructions of a request may grow when the history is
#: twice as long. ``FEW``: a request that ran fewer instructions before is judged as if it had run
#: this many.
MOST, FEW = 1.5, 1_500
#: The time of the added history, in microseconds. It is long ago, so that reads which begin with
#: the newest rows meet it last.
LONG_AGO = 1_700_000_000_000_000
QUESTION = {"kind": "statistic", "statistic": "edges"}


class Effort(NamedTuple):
    """The outcome of one request: its status, instructions, and whether it held a slot."""

    status: int
    count: int
    slot: bool


@contextmanager
def counted(database: Database) -> Iterator[Callable[[], int]]:
    """The instructions that SQLite runs for requests, without those of background threads."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 100
        return 0

    def begin(driver: Any, *_: object) -> None:
        name = threading.current_thread().name
        driver.set_progress_handler(tick if "AnyIO" in name or "portal" in name else None, 100)

    def end(driver: Any, *_: object) -> None:
        driver.set_progress_handler(None, 100)

    event.listen(database.engine, "checkout", begin)
    event.listen(database.engine, "checkin", end)
    try:
        yield lambda: count
    finally:
        event.remove(database.engine, "checkout", begin)
        event.remove(database.engine, "checkin", end)


def add_history(database: Database, first: int) -> None:
    """Adds answered queries with their entries and facts, and changes by administrators."""
    numbers = range(first, first + QUERIES)

    def work(connection: Connection) -> None:
        accounts = connection.execute(select(budget_account)).all()
        paid = connection.execute(select(query).order_by(query.c.created_us.desc())).first()
        assert paid is not None
        rows = [
            paid._asdict()
            | {"id": UUID(int=number), "idem_key": f"key {number}"}
            | dict.fromkeys(("created_us", "settled_us", "release_us"), LONG_AGO + number)
            for number in numbers
        ]
        connection.execute(insert(query), rows)
        for account in accounts:
            last = connection.execute(
                select(entry).where(entry.c.account_id == account.id).order_by(entry.c.seq.desc())
            ).first()
            assert last is not None
            entries = [
                last._asdict()
                | {"seq": account.seq + 1 + number - first, "query_id": UUID(int=number)}
                | {"at_us": LONG_AGO + number}
                for number in numbers
            ]
            connection.execute(insert(entry), entries)
            longer = update(budget_account).where(budget_account.c.id == account.id)
            connection.execute(longer.values(seq=account.seq + QUERIES))
        text = canonical({"action": "budget.set", "detail": {}, "name": "x", "state": {}})
        fact = {"subject": b"", "actor": 0, "digest": bytes(32), "head": bytes(32)}
        kinds = (FactKind.ACCEPTED, FactKind.LIMIT, FactKind.UNTOLD_VERSION)
        facts = [
            {"stream": 10**6 + kind, "seq": number, "kind": int(kind), "fact": text, **fact}
            | {"at_us": LONG_AGO + number}
            for kind in kinds
            for number in numbers
        ]
        connection.execute(insert(journal), facts)

    database.write(work)


def test_a_long_history_makes_no_request_long(
    people: Service, application: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: Services = application.state.services
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    body = {"dataset": name, "epsilon": "0.001", "query": QUESTION}
    paid = people("ana", "POST", "/v1/queries", json=body)
    assert paid.status_code == 201, paid.text
    parts = {"query_id": paid.json()["id"], "id": paid.json()["id"], "user": "ana"}
    # A certificate lists at most this many answers, which is less than the whole history.
    monkeypatch.setattr(certificates, "MOST_ANSWERS", QUERIES // 2)
    slots: list[int] = []
    slot = services.reads.slot

    def noted(caller_id: int) -> AbstractContextManager[None]:
        slots.append(caller_id)
        return slot(caller_id)

    monkeypatch.setattr(services.reads, "slot", noted)

    def effort(who: str, path: str) -> Effort:
        while services.database._readers:
            services.database._readers.pop().invalidate()
        slots.clear()
        with counted(services.database) as count:
            reply = people(who, "GET", path)
            return Effort(reply.status_code, count(), bool(slots))

    def efforts() -> dict[tuple[str, str], Effort]:
        return {
            (who, path): effort(who, path)
            for route in routes_of(application)
            if not isinstance(route, Page) and "GET" in (route.methods or ())
            if not route.access.public
            for path in [route.path.format(**{"name": name, "dataset": name, "slug": "x"} | parts)]
            for who, role in PEOPLE.items()
            if role in route.access.roles
        }

    add_history(services.database, 1)
    before = efforts()
    add_history(services.database, QUERIES + 1)
    after = efforts()
    longer = {
        key: (before[key].count, one.count)
        for key, one in after.items()
        if one.status < 400 and not one.slot and one.count > MOST * max(FEW, before[key].count)
    }
    assert longer == {}
    slow = [path for (_, path), one in after.items() if one.slot and one.count > FEW]
    assert f"/v1/budgets/{name}/history" in slow, "nothing grew, so nothing was judged"
