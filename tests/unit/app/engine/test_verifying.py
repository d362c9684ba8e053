"""The background verification: what each run reads, what it writes, and what it forgets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.contract import errors
from app.engine import verifying
from app.engine.verifying import Verifier
from app.identity.callers import Caller
from app.usecases import ledger
from storage.assurance import heads_file, verify_chains
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.assurance.verification import verify
from storage.database import tables
from storage.errors import Busy
from storage.people.key_scopes import KeyScope
from storage.people.users import User
from tests.support.databases import database, kind, migrated, migrated_file, postgresql, url, world
from tests.support.ledgers import busy_ledger
from tests.support.patience import PATIENCE
from tests.support.tampering import rows_of, set_field, tampering
from tests.support.world import World, contents, loss, request

__all__ = ["database", "kind", "migrated", "migrated_file", "postgresql", "url", "world"]

YEAR = 31_536_000


@pytest.fixture
def log(tmp_path: Path) -> HeadsLog:
    log = HeadsLog(tmp_path / "heads.log")
    log.begin(1)
    return log


@pytest.fixture
def entries_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The entries that the chains have read since this list was last emptied."""
    rows: list[Any] = []
    streamed = verify_chains.streamed

    def counted(*arguments: Any) -> Iterator[Any]:
        for row in streamed(*arguments):
            rows.append(row)
            yield row

    monkeypatch.setattr(verify_chains, "streamed", counted)
    return rows


def scheduled(verifier: Verifier) -> None:
    verifier._verify(requested=False)  # The thread of the verifier calls this after each interval.


def test_a_later_run_reads_new_entries_alone_and_never_says_valid(
    world: World, log: HeadsLog, entries_read: list[Any]
) -> None:
    (analyst, *_) = busy_ledger(world, 40)
    stored = contents(world.database)
    first = Verifier(world.database, HeadsLog(log.path), 3600, YEAR)
    scheduled(first)
    assert first.latest is not None
    assert (first.latest.whole, first.latest.valid) == (True, True)
    assert len(entries_read) > 80
    assert contents(world.database) == stored
    entries_read.clear()
    # A later process reads in the file of heads how far the ledger was verified, and goes on there.
    later = Verifier(world.database, HeadsLog(log.path), 3600, YEAR)
    scheduled(later)
    assert later.latest is not None
    assert (later.latest.whole, later.whole_us) == (False, first.latest.at_us)
    assert entries_read == []
    dataset = world.datasets.find("dataset4")
    for _ in range(3):
        world.ledger.reserve(request(dataset, analyst))
    scheduled(later)
    assert (later.latest.whole, later.latest.valid, len(entries_read)) == (False, True, 6)
    scheduled(later)
    assert len(entries_read) == 6


def test_a_whole_run_follows_when_it_is_due(world: World, log: HeadsLog) -> None:
    world.ready()
    verifier = Verifier(world.database, log, 3600, 0.000001)
    for _ in range(2):
        scheduled(verifier)
        assert verifier.latest is not None
        assert verifier.latest.whole


@pytest.mark.parametrize("table", ["journal", "journal_stream"])
def test_a_later_run_finds_what_is_wrong_in_new_facts(
    world: World, log: HeadsLog, table: str
) -> None:
    world.ready()
    verifier = Verifier(world.database, log, 3600, YEAR)
    scheduled(verifier)
    world.ready()
    stored = tables.metadata.tables[table]
    with world.database.read() as connection:
        row = rows_of(connection, stored)[-1]
    column = stored.c.fact if table == "journal" else stored.c.seq
    value = row.fact + " " if table == "journal" else row.seq + 1
    with tampering(world.database.engine.url.render_as_string(hide_password=False)) as run:
        run(set_field(stored, row, column, value))
    scheduled(verifier)
    assert verifier.latest is not None
    assert verifier.latest.first_bad is not None
    assert (verifier.latest.whole, verifier.latest.first_bad.table) == (False, table)


@pytest.mark.parametrize("column", ["charged_eps_n", "lim_eps_n", "head", "frozen", "seq"])
def test_a_changed_account_is_found_without_its_entries(
    world: World, log: HeadsLog, column: str
) -> None:
    busy_ledger(world, 10)
    verifier = Verifier(world.database, log, 3600, YEAR)
    scheduled(verifier)
    with world.database.read() as connection:
        row = rows_of(connection, tables.budget_account)[2]
    value = bytes(32) if column == "head" else getattr(row, column) + 1
    with tampering(world.database.engine.url.render_as_string(hide_password=False)) as run:
        run(set_field(tables.budget_account, row, tables.budget_account.c[column], value))
    scheduled(verifier)
    assert verifier.latest is not None
    assert not verifier.latest.valid


def test_a_contradiction_is_not_forgotten_by_a_run_that_does_not_read_it(
    world: World, log: HeadsLog
) -> None:
    busy_ledger(world, 10)
    verifier = Verifier(world.database, log, 3600, 1e-6)
    with world.database.read() as connection:
        row = rows_of(connection, tables.query)[0]
    c = tables.query.c
    with tampering(world.database.engine.url.render_as_string(hide_password=False)) as run:
        run(set_field(tables.query, row, c.body_hash, bytes(32)))
        with capture_logs() as lines:
            scheduled(verifier)
            verifier._whole = YEAR
            scheduled(verifier)
        # The same contradiction in the ledger is logged once, however often a run finds it.
        assert [line["log_level"] for line in lines] == ["critical"]
        assert verifier.latest is not None
        assert verifier.latest.first_bad is not None
        assert verifier.latest.first_bad.row == f"query {row.id}"
        run(set_field(tables.query, row, c.body_hash, row.body_hash))
    scheduled(verifier)
    assert (verifier.latest.whole, verifier.latest.valid) == (True, True)
    assert verifier.whole_us == verifier.latest.at_us


def test_a_request_waits_for_a_run_that_begins_after_it(
    world: World, log: HeadsLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A request verifies the whole ledger if the last complete verification was quick. With this
    # limit it counts as quick on any machine.
    monkeypatch.setattr(verifying, "QUICK", PATIENCE)
    world.ready()
    verifier = Verifier(world.database, log, 3600, YEAR)
    verifier.start()
    try:
        verifier.request().result(PATIENCE)
        first = verifier.latest
        world.ready()
        verifier.request().result(PATIENCE)
        second = verifier.latest
        assert first is not None
        assert second is not None
        assert (len(first.accounts), len(second.accounts)) == (2, 4)
        assert second.whole
        # Verification on request writes nothing to the file of heads, so that analysts cannot make
        # it grow.
        assert log.path.read_bytes().count(b"\n") == 1
    finally:
        verifier.close()


def test_a_request_does_not_wait_for_the_share_of_a_whole_run(world: World, log: HeadsLog) -> None:
    """It reads new entries alone, however long it would take to read everything."""
    world.ready()
    verifier = Verifier(world.database, log, 3600, YEAR)
    scheduled(verifier)
    verifier._took = 3600.0
    verifier.start()
    try:
        verifier.request().result(PATIENCE)
        assert verifier.latest is not None
        assert (verifier.latest.whole, verifier.latest.valid) == (False, True)
    finally:
        verifier.close()


def test_runs_on_request_take_a_share_of_the_time(
    world: World, log: HeadsLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "SHARE", 10**9)
    verifier = Verifier(world.database, log, 3600, YEAR)
    verifier.start()
    try:
        verifier.request().result(PATIENCE)
        with pytest.raises(TimeoutError):
            verifier.request().result(0.2)
    finally:
        verifier.close()


def test_requests_that_are_given_up_leave_nothing_behind(
    world: World, log: HeadsLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large ledger takes minutes, and every caller goes after two seconds."""
    began, go_on = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> None:
        began.set()
        go_on.wait(PATIENCE)
        raise Busy("later")

    monkeypatch.setattr(verifying, "verify", slow)
    verifier = Verifier(world.database, log, 3600, YEAR)
    services: Any = SimpleNamespace(verifier=verifier)
    caller: Any = SimpleNamespace(id=1, roles=frozenset({"auditor"}))
    verifier.start()
    try:
        verifier.request()
        assert began.wait(PATIENCE)
        for _ in range(20):
            with pytest.raises(errors.Busy):
                asyncio.run(ledger.verify(services, caller, wait=0.001))
        last = verifier.request()
        assert verifier._waiting == [last]
        go_on.set()
        last.result(PATIENCE)  # The verifier must go on although callers cancelled their futures.
    finally:
        go_on.set()
        verifier.close()


@pytest.mark.parametrize(
    ("error", "counts"),
    [(Busy("later"), True), (OSError("heads"), True), (RuntimeError("a row"), False)],
)
def test_after_a_run_that_failed_nothing_is_shown_as_valid(
    world: World,
    log: HeadsLog,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    counts: bool,
) -> None:
    """A tamperer could otherwise keep an old outcome by a row that ends every later run."""
    # Without this setting, the next verification on request would wait ten times as long as the
    # last one took, which is seconds on a busy machine.
    monkeypatch.setattr(verifying, "SHARE", 0)
    failing = pytest.MonkeyPatch()
    verifier = Verifier(world.database, log, 3600, YEAR)
    verifier.start()
    try:
        verifier.request().result(PATIENCE)
        assert verifier.latest is not None

        def fail(*_: object, **__: object) -> None:
            raise error

        for name in ("verify", "verify_new"):
            failing.setattr(verifying, name, fail)
        verifier.request().result(PATIENCE)
        assert (verifier.latest is not None) is counts
        assert verifier.broke_off is not counts
        failing.undo()
        verifier.request().result(PATIENCE)
        assert not verifier.broke_off
    finally:
        failing.undo()
        verifier.close()


def test_without_heads_a_verification_writes_none(world: World, tmp_path: Path) -> None:
    """Else the file would seem to have heads, and charges would be accepted again."""
    world.ready()
    verifier = Verifier(world.database, HeadsLog(tmp_path / "none.log"), 3600, YEAR)
    scheduled(verifier)
    assert verifier.latest is not None
    assert verifier.latest.valid
    assert not (tmp_path / "none.log").exists()


def test_what_was_verified_survives_a_compaction_and_ends_with_an_acceptance(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads_file, "EACH", 1)
    busy_ledger(world, 10)
    path = tmp_path / "heads.log"
    log = HeadsLog(path, tmp_path / "copy.log", long=1)
    log.begin(1)
    verifier = Verifier(world.database, log, 3600, YEAR)
    scheduled(verifier)
    assert len(log.verified) == 8
    assert log.whole_us is not None
    world.ready()
    Publisher(world.database, log).look()
    for one in (path, tmp_path / "copy.log"):
        again = HeadsLog(one)
        again.refresh()
        assert b'"kind":"start"' in one.read_bytes()
        assert (again.verified, again.whole_us) == (log.verified, log.whole_us)
    state = next(iter(log.published.values()))
    log.accept([state], [], 5)
    assert state.account not in log.verified


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_each_caller_sees_the_extent_of_their_own_accounts(world: World) -> None:
    first, ana = world.ready()
    second, ben = world.ready()
    world.grant(second, ana, loss(1))
    world.ledger.reserve(request(first, ana))
    services: Any = SimpleNamespace(
        database=world.database,
        verifier=SimpleNamespace(latest=verify(world.database), whole_us=None),
    )

    def extent(user: User) -> tuple[int, int]:
        outcome = ledger.latest(services, Caller(user, "key", "api"))
        assert outcome is not None
        return outcome.accounts, outcome.entries

    limited = replace(ana, scope=KeyScope(datasets=frozenset({first.id})))
    auditor = world.users.create("otto", ["auditor"], actor=world.admin)[0]
    # All callers share one outcome of the verification. The second round shows that no caller
    # changes what another one sees, which depends on the datasets that the caller may read.
    for _ in range(2):
        assert [extent(user) for user in (auditor, ana, ben, limited, world.owner)] == [
            (5, 7),
            (2, 3),
            (1, 1),
            (1, 2),
            (5, 7),
        ]
