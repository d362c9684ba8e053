"""Analysts, datasets and ample accounts straight in the tables: for what is measured below HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, insert

from accounting.account import AccountRank, Limit
from accounting.privacy_loss import PrivacyLoss
from storage.catalogue.dataset_states import record_dataset, record_version
from storage.database.database import Database
from storage.database.tables import dataset, dataset_version, users
from storage.journal.facts import FactKind, changed, number_subject
from storage.journal.streams import record
from storage.ledger.accounts import AccountKey
from storage.ledger.ledger import Ledger, Reserve
from storage.ledger.limits import open_account
from storage.people.person_facts import record_user

AMPLE = PrivacyLoss.parse("900000000")
CHARGE = PrivacyLoss(1)
BODY_HASH = sha256(b"a body").digest()
#: A request with only those fields that the history of charges reads.
REQUEST = (
    b'{"dataset":"d1","epsilon":"0.000000001",'
    b'"query":{"kind":"selection","selector":"auto","sensitivity":"auto"}}'
)
ANSWER = b'{"status":"answered","answer":{"selected":1}}' * 8
#: The accounts that every query is charged to, with ample limits: the analyst's on the dataset, and
#: the dataset's.
NEEDED = {AccountRank.ANALYST_ON_DATASET: AMPLE, AccountRank.DATASET: AMPLE}

Pair = tuple[int, int]
"""The ids of an analyst and of a dataset."""


@contextmanager
def opened(url: str, folder: Path) -> Iterator[tuple[Database, Ledger]]:
    """A database with the schema, and a ledger on it."""
    database = Database.open(url, folder)
    try:
        yield database, Ledger(database)
    finally:
        database.close()


def hot_account(database: Database) -> Pair:
    """One analyst on one dataset: an account, an overall limit and the dataset's cap."""
    limits = NEEDED | {AccountRank.ANALYST: AMPLE}
    return database.write(lambda connection: new_pairs(connection, limits))[0]


def many_accounts(database: Database, count: int) -> list[Pair]:
    """As many pairs that have no account in common."""
    return database.write(lambda c: [pair for _ in range(count) for pair in new_pairs(c, NEEDED)])


def new_pairs(
    connection: Connection,
    limits: Mapping[AccountRank, PrivacyLoss | Limit],
    analysts: int = 1,
    datasets: int = 1,
) -> list[Pair]:
    """Every pair of as many new analysts and published datasets, with accounts of these limits."""
    pairs = list(
        product(
            [_user(connection) for _ in range(analysts)],
            [_dataset(connection) for _ in range(datasets)],
        )
    )
    for rank, key in sorted({(rank, account_key(rank, pair)) for rank in limits for pair in pairs}):
        promised = limits[rank]
        limit = promised if isinstance(promised, Limit) else Limit.of(promised)
        account = open_account(connection, key, limit, actor_id=1)
        assert account is not None
        # The cap, the limit of a whole dataset, is recorded with its registration.
        if rank != AccountRank.DATASET:
            subject, state = number_subject(account.id), {"limits": list(limit.amounts)}
            fact = changed(FactKind.LIMIT, subject, 1, "budget.set", "", {}, state, account.seq)
            record(connection, fact)
    return pairs


def account_key(rank: AccountRank, pair: Pair) -> AccountKey:
    """The rank, the dataset and the analyst of an account; 0 stands for all."""
    analyst, of = pair
    of_dataset, of_analyst = rank != AccountRank.ANALYST, rank != AccountRank.DATASET
    return AccountKey(int(rank), of * of_dataset, analyst * of_analyst)


def request(pair: Pair, charge: PrivacyLoss = CHARGE, key: str | None = None) -> Reserve:
    return Reserve(uuid4(), pair[0], pair[1], key, BODY_HASH, charge, REQUEST)


def _user(connection: Connection) -> int:
    row = {"name": f"user-{uuid4().hex}", "disabled": 0, "created_us": 0}
    id = int(connection.execute(insert(users).returning(users.c.id), row).scalar_one())
    record_user(connection, id, id, "user.create", {})
    return id


def _dataset(connection: Connection) -> int:
    """The id of a dataset whose first version is published, as far as the tables know."""
    row: dict[str, Any] = {
        "name": f"dataset-{uuid4().hex}",
        "owner_id": _user(connection),
        "description": "{}",
        "neighbouring": "edge",
        "records_per_person": 1,
        "version": 1,
        "versions": 1,
        "created_us": 0,
    }
    id = int(connection.execute(insert(dataset).returning(dataset.c.id), row).scalar_one())
    published = {"dataset_id": id, "version": 1, "published_us": 0}
    connection.execute(insert(dataset_version), published)
    record_version(connection, 1, id, 1, "records.publish")
    record_dataset(connection, 1, id, "dataset.register", {})
    return id
