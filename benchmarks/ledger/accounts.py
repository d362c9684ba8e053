"""Analysts, datasets and ample accounts straight in the tables: for what is measured below HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.tables import dataset, dataset_version, users
from storage.ledger.ledger import Ledger, Reserve
from storage.ledger.limits import open_account

AMPLE = PrivacyLoss.parse("900000000")
CHARGE = PrivacyLoss(1)
BODY_HASH = sha256(b"a body").digest()
REQUEST = b'{"dataset":"d1","epsilon":"0.000000001","query":{"kind":"selection"}}'
ANSWER = b'{"status":"answered","answer":{"selected":1}}' * 8

Pair = tuple[int, int]
"""The ids of an analyst and of a dataset."""


@contextmanager
def opened(url: str, folder: Path) -> Iterator[tuple[Database, Ledger]]:
    """A database with the schema, and a ledger on it."""
    database = Database.open(url, folder)
    try:
        yield database, Ledger(database, failure_body=failure_body)
    finally:
        database.close()


def failure_body(id: UUID) -> bytes:
    return b'{"id":"%s"}' % str(id).encode()


def hot_account(database: Database) -> Pair:
    """One analyst on one dataset: an account, an overall limit and the dataset's cap."""

    def work(connection: Connection) -> Pair:
        analyst, owner = _user(connection), _user(connection)
        shared = _dataset(connection, owner)
        _open(connection, AccountRank.ANALYST_ON_DATASET, shared, analyst, AMPLE)
        _open(connection, AccountRank.DATASET, shared, 0, AMPLE)
        _open(connection, AccountRank.ANALYST, 0, analyst, AMPLE)
        return analyst, shared

    return database.write(work)


def many_accounts(database: Database, count: int) -> list[Pair]:
    """As many pairs that have no account in common."""

    def work(connection: Connection) -> list[Pair]:
        owner = _user(connection)
        pairs = []
        for _ in range(count):
            pair = _user(connection), _dataset(connection, owner)
            _open(connection, AccountRank.ANALYST_ON_DATASET, pair[1], pair[0], AMPLE)
            _open(connection, AccountRank.DATASET, pair[1], 0, AMPLE)
            pairs.append(pair)
        return pairs

    return database.write(work)


def new_user(database: Database) -> int:
    """The id of somebody without a key."""
    return database.write(_user)


def new_dataset(database: Database) -> int:
    """The id of a dataset whose first version is published, as far as the tables know."""
    return database.write(lambda connection: _dataset(connection, _user(connection)))


def new_account(
    database: Database, rank: AccountRank, dataset_id: int, analyst_id: int, limit: PrivacyLoss
) -> int:
    """The id of a new account."""

    def work(connection: Connection) -> int:
        return _open(connection, rank, dataset_id, analyst_id, limit)

    return database.write(work)


def request(pair: Pair, charge: PrivacyLoss = CHARGE, key: str | None = None) -> Reserve:
    return Reserve(uuid4(), pair[0], pair[1], 1, key, BODY_HASH, charge, REQUEST)


def _user(connection: Connection) -> int:
    row = {"name": f"user-{uuid4().hex}", "disabled": 0, "created_us": 0}
    return int(connection.execute(insert(users).returning(users.c.id), row).scalar_one())


def _dataset(connection: Connection, owner: int) -> int:
    row: dict[str, Any] = {
        "name": f"dataset-{uuid4().hex}",
        "owner_id": owner,
        "description": "{}",
        "neighbouring": "edge",
        "records_per_person": 1,
        "version": 1,
        "versions": 1,
        "created_us": 0,
    }
    made = int(connection.execute(insert(dataset).returning(dataset.c.id), row).scalar_one())
    published = {"dataset_id": made, "version": 1, "published_us": 0}
    connection.execute(insert(dataset_version), published)
    return made


def _open(
    connection: Connection, rank: AccountRank, dataset_id: int, analyst_id: int, limit: PrivacyLoss
) -> int:
    account = open_account(connection, (rank, dataset_id, analyst_id), limit, actor_id=1)
    assert account is not None
    return account.id
