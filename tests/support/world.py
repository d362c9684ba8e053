"""A small service without HTTP: users, datasets, a ledger, and the check of its invariants."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, func, select, update

from accounting.account import AccountRank, Limit, admits
from accounting.conversion import MOST_EPSILON_NANO
from accounting.measures import MEASURES
from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import GraphDomain, NeighbouringRelation
from storage.catalogue.datasets import Datasets, StoredDataset
from storage.catalogue.record_versions import RecordVersions
from storage.database import tables
from storage.database.database import Database
from storage.journal.facts import FactKind
from storage.journal.layouts import (
    EMPTY_HEAD,
    EntryKind,
    entry_digest,
    next_head,
    salted_digest,
)
from storage.ledger.accounts import LIMITS, MOVED, MOVED_LIMIT
from storage.ledger.ledger import Reserve
from storage.people.keys import Restrictions
from storage.people.users import User, Users
from storage.queries.history import Queries
from storage.records.data_folder import Files
from tests.support.blocking import BlockingLedger

MINUTE = 60 * 1_000_000
BODY_HASH = sha256(b"a body").digest()


def loss(epsilon: int | str, delta: int | str = 0) -> PrivacyLoss:
    return PrivacyLoss.parse(epsilon, delta)


def allowance(epsilon: int | str, delta: int | str = 0) -> Limit:
    return Limit.of(loss(epsilon, delta))


def as_limit(limit: PrivacyLoss | Limit) -> Limit:
    """A loss as the limit of an account where ε alone counts."""
    return limit if isinstance(limit, Limit) else Limit.of(limit)


def authenticate(users: Users, key: str) -> User | None:
    """The user of a key, whose use is noted; None for a key that opens nothing."""
    signed_in = users.sign_in(key)
    if signed_in is None:
        return None
    if signed_in.stale:
        users.note_use(signed_in.key_id)
    return signed_in.user


class World:
    """One admin, one owner, and any number of analysts and datasets."""

    def __init__(self, database: Database, folder: Path, lease_us: int = MINUTE) -> None:
        self.database = database
        self.files = Files(folder / "data")
        self.users, self.queries = Users(database), Queries(database)
        self.datasets = Datasets(database, self.files)
        self.versions = RecordVersions(database, self.files, self.datasets)
        self.ledger = BlockingLedger(database, lease_us=lease_us)
        self._numbers = count(1)
        key_file = folder / "admin.key"
        self.users.bootstrap(key_file)
        admin = authenticate(self.users, key_file.read_text())
        assert admin is not None
        self.admin = admin
        self.owner = self.users.create("olga", ["owner"], actor=admin)[0]

    def analyst(self) -> User:
        return self.users.create(f"analyst{next(self._numbers)}", ["analyst"], actor=self.admin)[0]

    def dataset(
        self, cap: PrivacyLoss | Limit | None = None, *, ready: bool = True
    ) -> StoredDataset:
        name = f"dataset{next(self._numbers)}"
        stored = self.datasets.register(
            name,
            owner=self.owner,
            description={"name": name, "kind": "graph"},
            domain=GraphDomain(nodes=4, max_degree=3),
            neighbouring=NeighbouringRelation.EDGE,
            records_per_person=1,
            cap=as_limit(cap or loss(100, "0.9")),
        )
        return self.publish(stored) if ready else stored

    def publish(self, stored: StoredDataset, rows: int | None = None) -> StoredDataset:
        upload = self.versions.begin_upload(stored.name, actor=self.owner)
        staging = self.files.staging_folder(stored.id)
        staging.mkdir()
        self.versions.publish(upload, staging, actor=self.owner, rows=rows)
        return self.datasets.find(stored.name)

    def grant(self, dataset: StoredDataset, analyst: User, limit: PrivacyLoss | Limit) -> None:
        self.ledger.grant(dataset.id, analyst.id, as_limit(limit), actor_id=self.owner.id)

    def limited_key(self, analyst: User, limit: PrivacyLoss) -> str:
        """The id of a new key of the analyst that has an account of its own."""
        opening = self.ledger.key_account(as_limit(limit), actor_id=analyst.id)
        restrictions = Restrictions(limited=True)
        issued = self.users.issue_key(
            analyst.name, actor=analyst, restrictions=restrictions, open_account=opening
        )
        return issued.key_id

    def ready(
        self,
        limit: PrivacyLoss | Limit | None = None,
        cap: PrivacyLoss | Limit | None = None,
    ) -> tuple[StoredDataset, User]:
        """A published dataset and an analyst with an allowance (1 by default) for it."""
        dataset, analyst = self.dataset(cap), self.analyst()
        self.grant(dataset, analyst, limit or loss(1))
        return dataset, analyst

    def lapse(self) -> None:
        """Let the lease of every running query expire."""
        late = update(tables.query).where(tables.query.c.state == 0).values(lease_until=0)
        self.database.write(lambda connection: connection.execute(late))

    def charged(self, dataset: StoredDataset, analyst: User) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The charges of the analyst's account and of the cap."""
        account = self.ledger.account(dataset.id, analyst.id)
        assert account is not None
        return account.account.charged, self.ledger.cap(dataset.id).account.charged

    def now(self) -> int:
        return self.database.now_us()


def request(
    dataset: StoredDataset,
    analyst: User,
    charge: PrivacyLoss | None = None,
    *,
    key: str | None = None,
    body_hash: bytes = BODY_HASH,
    limited_key: str | None = None,
) -> Reserve:
    return Reserve(
        query_id=uuid4(),
        analyst_id=analyst.id,
        dataset_id=dataset.id,
        key=key,
        body_hash=body_hash,
        charge=charge or PrivacyLoss(NANO // 10),
        request=b'{"kind":"top_k"}',
        limited_key=limited_key,
    )


def contents(database: Database, *without: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in a fixed order."""
    with database.read() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in tables.metadata.sorted_tables
            if table.name not in without
        }


def check_invariants(database: Database) -> None:
    """Check the invariants, recomputed from the entries and the queries."""
    with database.read() as connection:
        entries = _entries_by_account(connection)
        for account in connection.execute(select(tables.budget_account)):
            _check_account(connection, account, entries[account.id])
        _check_answers(connection)


def _entries_by_account(connection: Connection) -> dict[int, list[Any]]:
    entries: dict[int, list[Any]] = {}
    ordered = select(tables.entry).order_by(tables.entry.c.account_id, tables.entry.c.seq)
    for row in connection.execute(ordered):
        entries.setdefault(row.account_id, []).append(row)
    return entries


def _check_account(connection: Connection, account: Any, entries: Sequence[Any]) -> None:
    limits = [getattr(account, column.name) for column in LIMITS]
    sums = [getattr(account, measure.charged) for measure in MEASURES]
    # Invariant I1: charges are never negative, and they fit the limits of the account.
    assert min(sums) >= 0
    assert admits(limits, sums, (0,) * len(sums))
    moves = [e for e in entries if e.kind in (EntryKind.CHARGE, EntryKind.RELEASE)]
    changes = [e for e in entries if e.kind in (EntryKind.GENESIS, EntryKind.LIMIT_CHANGE)]
    assert account.charged_eps_n == sum(e.d_eps_n for e in moves)
    # Invariant I2: the charges and limits of an account are the sums of its entries.
    for moved, charged in zip(MOVED, sums, strict=True):
        assert charged == sum(getattr(e, moved) or 0 for e in moves)
    for moved, most in zip(MOVED_LIMIT, limits, strict=True):
        assert most == sum(getattr(e, moved) or 0 for e in changes)
    if account.rank != AccountRank.ANALYST:
        # Invariant I2: the charges of an account are also the sums of its queries that were not
        # released.
        q = tables.query.c
        amounts = (q[measure.column] for measure in MEASURES)
        standing = select(*(func.coalesce(func.sum(one), 0) for one in amounts)).where(q.state != 2)
        if account.rank == AccountRank.KEY:
            standing = standing.where(q.limited_key == account.key_id)
        else:
            standing = standing.where(q.dataset_id == account.dataset_id)
        if account.rank == AccountRank.ANALYST_ON_DATASET:
            standing = standing.where(q.analyst_id == account.analyst_id)
        epsilon, delta, rho, unpriced = connection.execute(standing).one()
        assert account.charged_eps_n == epsilon
        assert (account.charged_delta_a, account.charged_unpriced) == (delta, unpriced)
        assert account.charged_rho_f >= rho or account.lim_eps_n > MOST_EPSILON_NANO
    # Invariant I10: the hashes of the entries form a chain that ends at the head of the account.
    head = EMPTY_HEAD
    for seq, e in enumerate(entries, start=1):
        kind = EntryKind(e.kind)
        digest = entry_digest(
            e.account_id,
            kind,
            None if e.query_id is None else e.query_id.bytes,
            e.actor,
            [one for name in MOVED_LIMIT if (one := getattr(e, name)) is not None],
            e.at_us,
            e.bound,
        )
        head = next_head(head, digest)
        assert (e.seq, e.digest, e.head) == (seq, digest, head)
    assert (account.seq, account.head) == (len(entries), head)
    assert entries[0].kind == EntryKind.GENESIS


def _check_answers(connection: Connection) -> None:
    q, j = tables.query.c, tables.journal.c
    ends = select(j.subject, j.fact).where(j.kind == int(FactKind.ENDED))
    facts = {UUID(bytes=row.subject): json.loads(row.fact) for row in connection.execute(ends)}
    ended = list(connection.execute(select(tables.query).where(q.state != 0)))
    # Invariant I4: every query that ended has its answer or its release in the journal.
    assert facts.keys() == {row.id for row in ended}
    for row in ended:
        fact = facts[row.id]
        assert fact["attempt"] == row.attempt
        if row.state == 1:
            assert fact["answer"] == salted_digest(row.salt, row.answer).hex()
        assert fact.get("released", False) == (row.state == 2)
