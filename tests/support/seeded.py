"""Known bugs of ledgers. Only tests switch them on, and the suites must detect each one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, func, insert, select, update

from accounting import account as account_rules
from accounting import obstacle
from accounting.account import AccountRank, Limit, admits
from accounting.errors import BudgetExhausted
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance import rollback, verify_chains
from storage.assurance.heads import Published
from storage.database import statements
from storage.database.database import Database, Transaction
from storage.database.failures import Again
from storage.database.statements import Each
from storage.database.tables import budget_account, entry, query
from storage.errors import CommitUnknown
from storage.journal import streams
from storage.journal.layouts import EntryKind
from storage.journal.writer import Writer
from storage.ledger import accounts, charging, entries, limits, replay, settling
from storage.ledger.accounts import AccountKey, find_account
from storage.ledger.entries import Cause, change_account
from storage.ledger.ledger import Replay, Reservation, Reserve
from storage.ledger.requests import QueryState
from storage.ledger.settling import _CHARGED
from tests.support.world import World

Seed = Callable[[World, pytest.MonkeyPatch], None]
_a = budget_account.c


class Edited(Each):
    """A hot statement whose text somebody has spoilt; ``old`` is a pattern."""

    def __init__(self, hot: Each, old: str, new: str) -> None:
        super().__init__(hot._columns, hot._state)
        self._old, self._new = old, new

    def _text(self, compiled: Any) -> str:
        text, changed = re.subn(self._old, self._new, super()._text(compiled))
        if not changed:
            # The statement no longer contains the text that this seeded bug changes. No test counts
            # this error as a caught bug.
            raise LookupError(text)
        return text


def standing(database: Database, request: Reserve) -> Any:
    """Reads the analyst's account in a separate transaction."""
    with database.read() as connection:
        key = AccountKey(AccountRank.ANALYST_ON_DATASET, request.dataset_id, request.analyst_id)
        return find_account(connection, key)


def check(account: Any, charge: PrivacyLoss) -> None:
    if not account.admits(charge):
        raise BudgetExhausted(charge=charge, remaining=account.remaining)


def _write(database: Database, account: int, **values: Any) -> None:
    change = update(budget_account).where(_a.id == account).values(**values)
    database.write(lambda connection: connection.execute(change))


def read_check_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads the sum, adds the charge in Python and writes it back."""

    def reserve(request: Reserve) -> None:
        row = standing(world.database, request)
        check(row.account, request.charge)
        charged = (row.account.charged + request.charge).epsilon_nano
        _write(world.database, row.id, charged_eps_n=charged)

    monkeypatch.setattr(world.ledger, "reserve", reserve)


def read_check_increment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database adds the charge, but an earlier read decided that it fits."""

    def reserve(request: Reserve) -> None:
        row = standing(world.database, request)
        check(row.account, request.charge)
        more = _a.charged_eps_n + request.charge.epsilon_nano
        _write(world.database, row.id, charged_eps_n=more)

    monkeypatch.setattr(world.ledger, "reserve", reserve)


def sum_over_entries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards by the sum of the entries under snapshot isolation (PostgreSQL)."""
    engine = world.database.engine.execution_options(isolation_level="REPEATABLE READ")

    def reserve(request: Reserve) -> None:
        account = standing(world.database, request)
        with engine.begin() as connection:
            spent = select(func.coalesce(func.sum(entry.c.d_eps_n), 0)).where(
                entry.c.account_id == account.id, entry.c.kind == int(EntryKind.CHARGE)
            )
            total = PrivacyLoss(int(connection.execute(spent).scalar_one())) + request.charge
            if not total.fits(account.account.limit.loss):
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
    """The first settlement wins, even from an attempt that lost the query."""
    spoilt = Edited(settling.SETTLE, r"attempt = ([^ ]+)", r"attempt >= \1 - 9")
    monkeypatch.setattr(settling, "SETTLE", spoilt)


def no_state_check(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that has ended can be settled again."""
    spoilt = Edited(settling.SETTLE, r"(WHERE.*)state = ", r"\1state >= ")
    monkeypatch.setattr(settling, "SETTLE", spoilt)


def no_guard(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the decision nor the UPDATE looks at what is left."""
    monkeypatch.setattr(charging, "refusal_of", lambda *_: None)
    _show_nothing_below_nothing(monkeypatch)
    spoilt = Edited(entries.CHARGE, r"budget_account.charged_\w+ \+ ([^ ]+) <=", r"0 * \1 <=")
    monkeypatch.setattr(charging, "CHARGE", spoilt)


def end_forgotten(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decision does not look at the end of an account, which the look-up has seen before."""
    monkeypatch.setattr(accounts.AccountBalance, "has_ended", lambda *_: False)


def guard_of_one_measure(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge that fits in ε is admitted whatever its δ."""

    def admits_epsilon(limits: Any, sums: Any, charge: Any) -> bool:
        return bool(sums[0] + charge[0] <= limits[0])

    monkeypatch.setattr(obstacle, "admits", admits_epsilon)
    _show_nothing_below_nothing(monkeypatch)
    spoilt = Edited(entries.CHARGE, r"budget_account.charged_delta_a \+ ([^ ]+) <=", r"0 * \1 <=")
    monkeypatch.setattr(charging, "CHARGE", spoilt)


def rho_of_one_arm(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges that fit by ε are not counted in ρ."""
    monkeypatch.setattr(charging, "counts_rho", lambda _limit: False)


def rho_refunded_twice(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release gives back twice the ρ of the charge."""
    twice = Edited(
        entries.CHANGES[EntryKind.RELEASE],
        r"(charged_rho_f=\(?budget_account.charged_rho_f \+) ",
        r"\1 2 * ",
    )
    monkeypatch.setitem(entries.CHANGES, EntryKind.RELEASE, twice)


def raise_without_delta(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry of a limit does not state the δ_c of its limit in ρ."""
    stated = Limit.amounts.fget  # type: ignore[attr-defined]
    less = property(lambda limit: (*stated(limit)[:3], 0, stated(limit)[4]))
    monkeypatch.setattr(Limit, "amounts", less)


def fill_forgotten(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first limit in ρ does not charge what the account did not count before."""
    monkeypatch.setattr(limits, "rho_to_fill", lambda _connection, _account: 0)


def fill_refused_by_a_freeze(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ρ of earlier charges needs an account that takes charges."""
    monkeypatch.setattr(entries, "FILL", entries.CHARGE)


def heads_without_limits(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published heads say what was charged, and not within which limits."""
    published = Published.of
    monkeypatch.setattr(Published, "of", lambda *state: replace(published(*state), limits=()))


def epsilon_after_lost_heads(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges that may have exceeded the limit in ε leave the rest of a later one to ε."""
    exhausted = rollback._exhausted

    def in_epsilon(limits: list[Limit], charged: PrivacyLoss) -> PrivacyLoss:
        return replace(exhausted(limits, charged), unpriced=charged.unpriced)

    monkeypatch.setattr(rollback, "_exhausted", in_epsilon)


def rho_counted_by_all(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heads of an account that does not count ρ are taken for its ρ."""
    monkeypatch.setattr(Published, "in_rho", True)


def promise_unchecked(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification believes every limit in ρ."""
    monkeypatch.setattr(verify_chains, "holds", lambda *_limit: True)


def unpriced_by_epsilon(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release without a finite ε is admitted because its ε of 0 fits."""

    def admits_all(limits: Any, sums: Any, charge: Any) -> bool:
        return bool(admits(limits, (*sums[:3], 0), (*charge[:3], 0)))

    monkeypatch.setattr(obstacle, "admits", admits_all)
    spoilt = Edited(entries.CHARGE, r"budget_account.charged_unpriced \+ ([^ ]+) <=", r"0 * \1 <=")
    monkeypatch.setattr(charging, "CHARGE", spoilt)


def gaussian_without_permission(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release without a finite ε is admitted where the owner did not allow it."""

    def admits_all(limits: Any, sums: Any, charge: Any) -> bool:
        return bool(admits((*limits[:4], 1), sums, charge))

    monkeypatch.setattr(obstacle, "admits", admits_all)
    spoilt = Edited(entries.CHARGE, r"([^ (]+) <= (budget_account.lim_gaussian)", r"0 * \1 <= \2")
    monkeypatch.setattr(charging, "CHARGE", spoilt)


def sums_beyond_64_bits(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """ρ admits charges up to the last sum of ε that fits an integer of SQLite."""
    monkeypatch.setattr(account_rules, "LARGEST_SUM", (1 << 63) - 1)
    # A statement reads ``LARGEST_SUM`` only when it is created. So ``CHARGE`` is created again with
    # the changed value.
    again = Each(entries.CHARGE._columns, entries.CHARGE._state)
    monkeypatch.setattr(charging, "CHARGE", again)


def rho_recomputed_at_release(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release gives back what the query would be charged now."""

    def recomputed(kind: EntryKind, actor: int, at_us: int, amounts: Any, *more: Any) -> Cause:
        epsilon, delta, _, unpriced = amounts
        amounts = (epsilon, delta, -pure_femto(-epsilon), unpriced)
        return Cause(kind, actor, at_us, amounts, *more)

    monkeypatch.setattr(settling, "Cause", recomputed)


def released_and_running(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge is given back, and the query stays in its state."""
    monkeypatch.setattr(
        settling, "_RELEASE", settling._RELEASE.values(state=int(QueryState.RUNNING))
    )


def head_of_its_own(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry's head does not depend on the head before it."""
    monkeypatch.setattr(entries, "next_head", lambda _head, digest: digest)


def no_ending(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is stored, and the fact of the ending is not."""
    monkeypatch.setattr(settling, "record", lambda *_: None)


def two_endings(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two facts state the ending of one query."""
    monkeypatch.setattr(settling, "record", lambda c, *facts: streams.record(c, *facts, *facts))


def stream_advanced_twice(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction advances its stream from where the one before it has already left."""
    keep = streams._keep

    def keep_first(connection: Connection, stream: Any) -> None:
        if connection.info.get(streams.STREAM) is None:
            keep(connection, stream)

    monkeypatch.setattr(streams, "_keep", keep_first)


def refund_on_lapse(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refunds an attempt whose lease expired, as if it had not opened the records."""
    take_over = replay.take_over

    def refunding(connection: Connection, **rest: Any) -> Any:
        outcome = take_over(connection, **rest)
        if isinstance(outcome, Reservation):
            _move(connection, outcome.query_id, EntryKind.RELEASE, -1)
        return outcome

    monkeypatch.setattr(replay, "take_over", refunding)


def release_by_anyone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases without a check of the attempt, so that a later one refunds a used charge."""
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


def key_not_charged(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query of a key with a limit is charged to its user alone."""
    reserve = charging._Batch.reserve

    def forgetting(batch: Any, request: Reserve) -> Any:
        return reserve(batch, replace(request, limited_key=None))

    monkeypatch.setattr(charging._Batch, "reserve", forgetting)


def key_not_named(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of the key is charged, and the query does not say so."""
    row = charging._Batch._row

    def silent(batch: Any, request: Reserve, *rest: Any) -> Any:
        return row(batch, request, *rest) | {"limited_key": None}

    monkeypatch.setattr(charging._Batch, "_row", silent)


def charge_at_settle(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges only at settlement, after the records were opened."""
    reserve, settle = world.ledger.reserve, world.ledger.settle

    def uncharged(request: Reserve) -> Reservation | Replay:
        result = reserve(request)
        if isinstance(result, Reservation):
            world.database.write(lambda c: _shift(c, result.query_id, -request.charge.epsilon_nano))
        return result

    def charging(reservation: Reservation, **reply: Any) -> bool:
        world.database.write(lambda c: _shift(c, reservation.query_id, 10**8))
        return settle(reservation, **reply)

    monkeypatch.setattr(world.ledger, "reserve", uncharged)
    monkeypatch.setattr(world.ledger, "settle", charging)


def two_transactions(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query is there, and the charge follows."""

    class Committing:
        def insert(self, connection: Connection, many: Any) -> Any:
            inserted = insert_all.insert(connection, many)
            driver = statements.driver_of(connection)
            statements.executed(driver, "COMMIT")
            begin = "BEGIN" if connection.dialect.name == "postgresql" else "BEGIN IMMEDIATE"
            statements.executed(driver, begin)
            return inserted

    insert_all = charging.NEW_QUERIES
    monkeypatch.setattr(charging, "NEW_QUERIES", Committing())


def reply_before_commit(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns outcomes even if their commit failed."""
    committed = Writer._committed

    async def eager(self: Writer, *batch: Any) -> Any:
        outcomes: list[Any] = []
        run = self._run

        def noting(connection: Connection, members: Any) -> Any:
            outcomes[:] = run(connection, members)
            return outcomes

        self._run = noting
        try:
            return await committed(self, *batch)
        except CommitUnknown:
            if outcomes:
                return outcomes
            raise
        finally:
            self._run = run

    monkeypatch.setattr(Writer, "_committed", eager)


def retry_after_unknown_commit(_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats a commit of unknown fate as failed."""
    commit = Transaction.commit

    def again(self: Transaction) -> None:
        try:
            commit(self)
        except CommitUnknown:
            raise Again from None

    monkeypatch.setattr(Transaction, "commit", again)


def missing_check(world: World, _monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema lacks the CHECK of limits."""
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
            "'charged_eps_n <= lim_eps_n', 'charged_eps_n = charged_eps_n') "
            "WHERE name = 'budget_account' AND sql LIKE '%charged_eps_n <= lim_eps_n%'"
        )
        assert changed.rowcount == 1
    world.database.engine.dispose()
    # The writer connection still holds the schema with the constraint, so it is closed too.
    world.database._drop_writer()


def _show_nothing_below_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An amount below zero is an error by itself, which no suite takes for a bug it caught."""
    nothing = property(lambda _: PrivacyLoss(0))
    monkeypatch.setattr(accounts.AccountBalance, "remaining", nothing)


def _move(connection: Connection, query_id: Any, kind: EntryKind, sign: int) -> None:
    """Adds an entry of ``kind`` to every account that the query was charged to."""
    charge = select(entry.c.d_eps_n).where(entry.c.query_id == query_id, entry.c.kind == 1)
    amount = connection.execute(charge).scalars().first()
    assert amount is not None
    cause = Cause(kind, 1, 0, (sign * amount, 0, 0, 0), query_id)
    for account in connection.execute(_CHARGED, {"query": query_id}).scalars().all():
        change_account(connection, account, cause)


def _shift(connection: Connection, query_id: Any, nano: int) -> None:
    for account in connection.execute(_CHARGED, {"query": query_id}).scalars().all():
        moved = update(budget_account).where(_a.id == account)
        connection.execute(moved.values(charged_eps_n=_a.charged_eps_n + nano))
