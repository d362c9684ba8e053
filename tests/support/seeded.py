"""Bugs that ledgers have had, to be switched on by tests alone: the suites must catch each one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, func, insert, select, update

from accounting.account import AccountRank
from accounting.errors import BudgetExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.database import database as database_module
from storage.database import statements
from storage.database.database import Database
from storage.database.statements import Hot
from storage.database.tables import budget_account, entry, query
from storage.errors import CommitUnknown
from storage.journal.layouts import EntryKind
from storage.ledger import batch, batch_postgresql, replay, settling
from storage.ledger.charging import Reserving
from storage.ledger.entries import Cause, add_entries, change_account
from storage.ledger.ledger import Replay, Reservation, Reserve
from storage.ledger.limits import find_account
from storage.ledger.settling import _CHARGED
from tests.support.world import World

Seed = Callable[[World, pytest.MonkeyPatch], None]
_a = budget_account.c


class Edited(Hot):
    """A hot statement whose text somebody has spoilt."""

    def __init__(self, hot: Hot, old: str, new: str) -> None:
        super().__init__(hot._statement)
        self._old, self._new = old, new

    def compiled(self, dialect: Any) -> Any:
        sql, arguments = super().compiled(dialect)
        assert self._old in sql, sql
        return sql.replace(self._old, self._new), arguments


def standing(database: Database, request: Reserve) -> Any:
    """The analyst's account, read in a transaction of its own."""
    with database.read() as connection:
        return find_account(
            connection, AccountRank.ANALYST_ON_DATASET, request.dataset_id, request.analyst_id
        )


def check(account: Any, charge: PrivacyLoss) -> None:
    if not account.admits(charge):
        raise BudgetExhausted(charge=charge, remaining=account.remaining)


def _write(database: Database, account: int, **values: Any) -> None:
    change = update(budget_account).where(_a.id == account).values(**values)
    database.write(lambda connection: connection.execute(change))


def read_check_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is added to and written back."""

    def reserve(request: Reserve) -> None:
        row = standing(world.database, request)
        check(row.account, request.charge)
        charged = (row.account.charged + request.charge).epsilon_nano
        _write(world.database, row.id, charged_eps_n=charged)

    monkeypatch.setattr(world.ledger, "reserve", reserve)


def read_check_increment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database adds, but what fits was decided before."""

    def reserve(request: Reserve) -> None:
        row = standing(world.database, request)
        check(row.account, request.charge)
        more = _a.charged_eps_n + request.charge.epsilon_nano
        _write(world.database, row.id, charged_eps_n=more)

    monkeypatch.setattr(world.ledger, "reserve", reserve)


def sum_over_entries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of the entries is the guard, under snapshot isolation (PostgreSQL)."""
    engine = world.database.engine.execution_options(isolation_level="REPEATABLE READ")

    def reserve(request: Reserve) -> None:
        account = standing(world.database, request)
        with engine.begin() as connection:
            spent = select(func.coalesce(func.sum(entry.c.d_eps_n), 0)).where(
                entry.c.account_id == account.id, entry.c.kind == int(EntryKind.CHARGE)
            )
            total = PrivacyLoss(int(connection.execute(spent).scalar_one())) + request.charge
            if not total.fits(account.account.limit):
                raise BudgetExhausted(charge=request.charge, remaining=PrivacyLoss(0))
            row = {
                "account_id": account.id,
                "seq": request.query_id.int >> 65,
                "kind": 1,
                "query_id": request.query_id,
                "actor": request.analyst_id,
                "d_eps_n": request.charge.epsilon_nano,
                "d_delta_a": 0,
                "at_us": 0,
                "digest": bytes(32),
                "head": bytes(32),
            }
            connection.execute(insert(entry), row)

    monkeypatch.setattr(world.ledger, "reserve", reserve)


def no_fencing(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever settles first wins, even an attempt that lost the query."""
    monkeypatch.setattr(batch, "SETTLE", Edited(batch.SETTLE, "attempt = ?", "attempt >= ? - 9"))
    spoil(monkeypatch, batch_postgresql, "SETTLE", " AND query.attempt = asked.attempt", "")


def no_state_check(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has ended may end again."""
    monkeypatch.setattr(batch, "SETTLE", Edited(batch.SETTLE, "state = ?", "state >= ?"))
    spoil(monkeypatch, batch_postgresql, "SETTLE", " AND query.state = 0", "")


def refund_on_lapse(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that went silent is believed to have done nothing."""
    take_over = replay.take_over

    def refunding(connection: Connection, lapsed: replay.Lapsed, *rest: Any) -> Any:
        _move(connection, lapsed.query_id, EntryKind.RELEASE, -1)
        return take_over(connection, lapsed, *rest)

    monkeypatch.setattr(replay, "take_over", refunding)


def release_by_anyone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later attempt takes itself for the only one, and gives the charge back."""
    spoilt = (
        update(query)
        .where(query.c.id == bindparam("query"), query.c.state == 0)
        .values(state=2, settled_us=bindparam("now"), release_us=bindparam("now"))
        .returning(query)
    )
    monkeypatch.setattr(settling, "_RELEASE", spoilt)
    release = world.ledger.release
    monkeypatch.setattr(
        world.ledger, "release", lambda reservation: release(replace(reservation, attempt=1))
    )


def charge_at_settle(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is held while the records are open."""
    reserve, settle = world.ledger.reserve, world.ledger.settle

    def uncharged(request: Reserve) -> Reservation | Replay:
        held = reserve(request)
        if isinstance(held, Reservation):
            world.database.write(lambda c: _shift(c, held.query_id, -request.charge.epsilon_nano))
        return held

    def charging(held: Reservation, **reply: Any) -> bool:
        world.database.write(lambda c: _shift(c, held.query_id, 10**8))
        return settle(held, **reply)

    monkeypatch.setattr(world.ledger, "reserve", uncharged)
    monkeypatch.setattr(world.ledger, "settle", charging)


def two_transactions(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query is there, and the charge follows (SQLite)."""
    insert_query = Reserving._insert

    def committing(self: Reserving, request: Reserve, version: int, at_us: int) -> bool:
        inserted = insert_query(self, request, version, at_us)
        for sql in ("COMMIT", "BEGIN IMMEDIATE"):
            statements.executed(self._driver, sql)
        return inserted

    monkeypatch.setattr(Reserving, "_insert", committing)


def reply_before_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcomes are told whatever becomes of the commit."""

    def eager(members: Any) -> Any:
        outcomes: list[Any] = []

        def work(connection: Connection) -> None:
            outcomes[:] = batch.run(connection, members, world.ledger._lease_us)

        with contextlib.suppress(CommitUnknown):
            world.database.write(work)
        return outcomes

    monkeypatch.setattr(world.ledger._writer, "_commit", eager)
    finish = Database._finish

    def told(self: Database, transaction: Any, value: Any) -> Any:
        with contextlib.suppress(CommitUnknown):
            finish(self, transaction, value)
        return value

    monkeypatch.setattr(Database, "_finish", told)


def retry_after_unknown_commit(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown commit is taken for one that failed."""
    once = Database._once

    def again(self: Database, work: Any) -> Any:
        try:
            return once(self, work)
        except CommitUnknown:
            raise database_module.Again from None

    monkeypatch.setattr(Database, "_once", again)


def missing_check(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema does not know what a limit is."""
    with world.database.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            name = connection.exec_driver_sql(
                "SELECT conname FROM pg_constraint WHERE conrelid = 'budget_account'::regclass "
                "AND pg_get_constraintdef(oid) LIKE '%%charged_eps_n%%'"
            ).scalar_one()
            connection.exec_driver_sql(f"ALTER TABLE budget_account DROP CONSTRAINT {name}")
            return
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        changed = connection.exec_driver_sql(
            "UPDATE sqlite_master SET sql = replace(sql, "
            "'charged_eps_n BETWEEN 0 AND lim_eps_n', 'charged_eps_n = charged_eps_n') "
            "WHERE name = 'budget_account' AND sql LIKE '%charged_eps_n BETWEEN%'"
        )
        assert changed.rowcount == 1
    world.database.engine.dispose()


def spoil(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, old: str, new: str) -> None:
    text = getattr(module, name)
    assert old in text
    monkeypatch.setattr(module, name, text.replace(old, new))


def _move(connection: Connection, query_id: Any, kind: EntryKind, sign: int) -> None:
    """An entry of ``kind`` for every account that the query was charged to."""
    charge = select(entry.c.d_eps_n).where(entry.c.query_id == query_id, entry.c.kind == 1)
    amount = connection.execute(charge).scalars().first()
    assert amount is not None
    cause = Cause(kind, 1, 0, sign * amount, 0, query_id)
    changes = [
        change_account(connection, account, cause)
        for account in connection.execute(_CHARGED, {"query": query_id}).scalars().all()
    ]
    add_entries(connection, [change for change in changes if change is not None])


def _shift(connection: Connection, query_id: Any, nano: int) -> None:
    for account in connection.execute(_CHARGED, {"query": query_id}).scalars().all():
        moved = update(budget_account).where(_a.id == account)
        connection.execute(moved.values(charged_eps_n=_a.charged_eps_n + nano))
