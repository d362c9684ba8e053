"""Functions that tests run in other processes: importable, with plain arguments."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from accounting.errors import BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.errors import Busy, StillRunning
from storage.ledger.ledger import Replay, Reserve
from storage.people.users import Users
from tests.support.blocking import BlockingLedger
from tests.support.world import BODY_HASH, MINUTE

T = TypeVar("T")


def patiently(call: Callable[[], T]) -> T:
    """Call like a client: retry if the database is busy, because nothing was written then."""
    while True:
        try:
            return call()
        except Busy:
            continue


def open_database(url: str, folder: str) -> bool:
    database = Database.open(url, Path(folder))
    try:
        return database.ready()
    finally:
        database.close()


def bootstrap(url: str, folder: str) -> bool:
    database = Database.open(url, Path(folder))
    try:
        return Users(database).bootstrap(Path(folder) / "bootstrap-admin.key")
    finally:
        database.close()


def reserve_many(
    url: str, folder: str, dataset_id: int, analyst_id: int, charge: int, tries: int, key: str
) -> list[str]:
    """The outcomes of ``tries`` reserves from eight threads; an empty ``key`` means new keys."""
    database = Database.open(url, Path(folder))
    ledger = BlockingLedger(database, lease_us=MINUTE)

    def once(_number: int) -> str:
        request = Reserve(
            query_id=uuid4(),
            analyst_id=analyst_id,
            dataset_id=dataset_id,
            key=key or None,
            body_hash=BODY_HASH,
            charge=PrivacyLoss(charge),
            request=b"{}",
        )
        try:
            outcome = patiently(lambda: ledger.reserve(request))
        except (BudgetExhausted, CapExhausted, StillRunning) as refusal:
            return type(refusal).__name__
        if isinstance(outcome, Replay):
            return outcome.body.decode()
        body = str(outcome.query_id)
        settled = partial(ledger.settle, outcome, status=201, body=body.encode(), release_us=0)
        assert patiently(settled)
        return body

    try:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(once, range(tries)))
    finally:
        database.close()
