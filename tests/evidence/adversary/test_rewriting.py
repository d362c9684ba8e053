"""Attacks on what a charge means: an answer drawn again, other bounds, an old file.

Each names the limit too: what nobody could publish yet, nobody can prove later.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, func, insert, select, text, update

from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.assurance.rollback import accept
from storage.assurance.verification import verify
from storage.database import tables
from storage.database.database import Database
from storage.errors import LedgerAlarm
from storage.journal.facts import Fact, FactKind
from storage.journal.layouts import EntryKind
from storage.journal.streams import record
from storage.ledger.accounts import AccountKey
from storage.ledger.entries import Cause, change_account
from storage.ledger.freezing import freeze, record_freeze
from storage.ledger.ledger import Reservation
from storage.ledger.limits import open_account
from tests.support.tampering import rows_of, tampering
from tests.support.world import World, allowance, loss, request

q, j, s = tables.query.c, tables.journal.c, tables.journal_stream.c
RESET = {
    "state": 0,
    "answer": None,
    "answer_hash": None,
    "answer_status": None,
    "settled_us": None,
    "release_us": None,
    "lease_until": 0,
}


@pytest.fixture
def log(tmp_path: Path) -> HeadsLog:
    log = HeadsLog(tmp_path / "heads.log")
    log.begin(1)
    return log


def url_of(world: World) -> str:
    return world.database.engine.url.render_as_string(hide_password=False)


def answered(world: World) -> tuple[Any, Reservation]:
    dataset, analyst = world.ready()
    paid = request(dataset, analyst, key="paid")
    reservation = world.ledger.reserve(paid)
    assert isinstance(reservation, Reservation)
    assert world.ledger.settle(reservation, status=201, body=b"an answer", release_us=0)
    return paid, reservation


def forget_the_ending(world: World, reservation: Reservation) -> None:
    """Reset the query, and cut its ending off the stream as if it had never been written."""
    with world.database.read() as connection:
        (ending,) = connection.execute(
            select(tables.journal).where(
                j.kind == int(FactKind.ENDED), j.subject == reservation.query_id.bytes
            )
        )
        last = connection.execute(select(func.max(j.seq)).where(j.stream == ending.stream))
        assert last.scalar_one() == ending.seq
        before = connection.execute(
            select(j.seq, j.head).where(j.stream == ending.stream, j.seq == ending.seq - 1)
        ).one()
    with tampering(url_of(world)) as run:
        run(update(tables.query).where(q.id == reservation.query_id).values(**RESET))
        run(delete(tables.journal).where(j.stream == ending.stream, j.seq == ending.seq))
        stream = update(tables.journal_stream).where(s.id == ending.stream)
        run(stream.values(seq=before.seq, head=before.head))


def test_a_paid_answer_is_not_drawn_again_by_resetting_its_row(world: World) -> None:
    paid, reservation = answered(world)
    with tampering(url_of(world)) as run:
        run(update(tables.query).where(q.id == reservation.query_id).values(**RESET))
    bad = verify(world.database).first_bad
    assert bad is not None
    assert bad.row == f"query {reservation.query_id}"
    with pytest.raises(LedgerAlarm):
        world.ledger.reserve(paid)


def test_an_answer_older_than_the_last_published_head_cannot_be_drawn_again(
    world: World, log: HeadsLog
) -> None:
    _, reservation = answered(world)
    Publisher(world.database, log).look()
    forget_the_ending(world, reservation)
    bad = verify(world.database, heads=log.present, streams=log.streams).first_bad
    assert bad is not None
    assert bad.table in ("journal", "journal_stream")
    # At its next look the publisher of heads (hashes of the journal) finds that facts are missing,
    # and freezes both accounts.
    assert len(Publisher(world.database, HeadsLog(log.path)).look()) == 2


def test_inside_the_last_interval_a_redraw_leaves_no_trace(world: World, log: HeadsLog) -> None:
    """The limit: the ending was in no head that has left the database."""
    dataset, analyst = world.ready()
    paid = request(dataset, analyst, key="paid")
    reservation = world.ledger.reserve(paid)
    assert isinstance(reservation, Reservation)
    Publisher(world.database, log).look()
    assert world.ledger.settle(reservation, status=201, body=b"an answer", release_us=0)
    forget_the_ending(world, reservation)
    assert verify(world.database, heads=log.present, streams=log.streams).valid


def test_other_bounds_under_a_running_budget_are_found(world: World) -> None:
    """Bounds of 120 that become 12 would cut the noise to a tenth."""
    dataset, _ = world.ready()
    with world.database.read() as connection:
        (row,) = rows_of(connection, tables.dataset)
    d = tables.dataset.c
    with tampering(url_of(world)) as run:
        for column in (d.description, d.domain):
            stored = getattr(row, column.name)
            changed = stored.replace("3", "2") if "3" in stored else stored.replace("graph", "x")
            assert changed != stored
            run(update(tables.dataset).where(d.id == dataset.id).values({column: changed}))
            bad = verify(world.database).first_bad
            assert bad is not None
            assert (bad.table, bad.row) == ("dataset", f"dataset {dataset.id}")
            # The reason that the verification gives must name the changed column.
            assert f'"{column.name}"' in bad.reason
            run(update(tables.dataset).where(d.id == dataset.id).values({column: stored}))
    assert verify(world.database).valid


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_old_file_is_found_although_it_agrees_with_itself(
    world: World, log: HeadsLog, tmp_path: Path
) -> None:
    paid, reservation = answered(world)
    del paid
    old = tmp_path / "old"
    old.mkdir()
    with tampering(url_of(world)) as run:
        run(tables.users.select())
    source = Path(str(world.database.engine.url.database))
    for suffix in ("", "-wal"):
        if Path(f"{source}{suffix}").exists():
            shutil.copy(f"{source}{suffix}", old / f"privypurse.db{suffix}")
    # After the copy of the database only a new analyst is created, and no account changes. So the
    # old copy lacks facts of the journal, but no entry of an account.
    world.analyst()
    Publisher(world.database, log).look()
    restored = Database.open(f"sqlite:///{old}/privypurse.db", old)
    try:
        assert verify(restored).valid
        assert not verify(restored, heads=log.present, streams=log.streams).valid
        publisher = Publisher(restored, HeadsLog(log.path))
        assert len(publisher.look()) == 2
        # An operator accepts that facts are lost. After that the streams of facts continue from the
        # old file.
        accept(restored, HeadsLog(log.path))
        assert publisher.look() == []
        log.refresh()
        assert verify(restored, heads=log.present, streams=log.streams).valid
    finally:
        restored.close()
    assert reservation.attempt == 1


@pytest.mark.parametrize("what", ["second ending", "gap", "other stream", "unknown tip"])
def test_forged_facts_are_found(world: World, what: str) -> None:
    """Facts that the tamperer chains correctly, as their last resort inside an interval."""
    _, reservation = answered(world)
    with world.database.read() as connection:
        facts = rows_of(connection, tables.journal)
        (ending,) = (row for row in facts if row.kind == FactKind.ENDED)
    values = ending._asdict()
    with tampering(url_of(world)) as run:
        if what == "second ending":
            run(text("DROP INDEX journal_ending"))
            values["seq"] = ending.seq + 1
        elif what == "gap":
            values["seq"] = ending.seq + 2
            values["subject"] = bytes(16)
        elif what == "other stream":
            values |= {"stream": ending.stream + 1, "seq": 1, "subject": bytes(16)}
        else:
            named = '{"lost":null,"tips":[[999,1,"00"]]}'
            first = facts[0]
            run(
                update(tables.journal)
                .where(j.stream == first.stream, j.seq == first.seq)
                .values(fact=named)
            )
            assert not verify(world.database).valid
            return
        run(insert(tables.journal).values(values))
        assert not verify(world.database).valid
        if what == "second ending":
            run(delete(tables.journal).where(j.stream == ending.stream, j.seq == ending.seq + 1))
            run(text("CREATE UNIQUE INDEX journal_ending ON journal (subject) WHERE kind = 5"))
    assert reservation.attempt == 1


@pytest.mark.parametrize(
    ("fact", "content"),
    [
        (FactKind.TAKEN_OVER, '{"attempt":1e999}'),
        (FactKind.TAKEN_OVER, '{"attempt":{}}'),
        (FactKind.USER, '{"revision":0.5,"state":{}}'),
        (FactKind.USER, '{"revision":1,"state":7}'),
        (FactKind.DATASET, "[" * 200_000),
    ],
)
def test_a_fact_that_cannot_be_read_is_named(
    database: Database, fact: FactKind, content: str
) -> None:
    """It is chained correctly, so nothing but its text shows that no service wrote it."""
    database.write(lambda connection: record(connection, Fact(fact, bytes(8), 0, content)))
    bad = verify(database).first_bad
    assert bad is not None
    assert (bad.row, bad.reason) == ("stream 1, fact 2", "cannot be read")


@pytest.mark.parametrize("whose", ["analyst", "cap"])
def test_a_limit_raised_without_its_fact_is_found(world: World, whose: str) -> None:
    """By an entry that is chained correctly: nothing but the journal lacks it."""
    dataset, analyst = world.ready()
    world.grant(dataset, analyst, loss(2))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert verify(world.database).valid
    id = account.id if whose == "analyst" else world.ledger.cap(dataset.id).id
    more = (10**9, *(0,) * (len(account.account.limit.amounts) - 1))
    raised = Cause(EntryKind.LIMIT_CHANGE, world.owner.id, world.now(), more)
    entry = world.database.write(lambda connection: change_account(connection, id, raised))
    assert entry is not None
    bad = verify(world.database).first_bad
    assert bad is not None
    assert (bad.row, bad.reason) == (
        f"account {id}, entry {entry.seq}",
        "sets a limit without a fact",
    )


@pytest.mark.parametrize("missing", ["fact", "entry"])
def test_a_freeze_without_its_fact_or_its_entry_is_found(world: World, missing: str) -> None:
    dataset, _ = world.ready()
    id = world.ledger.cap(dataset.id).id
    world.database.write(lambda connection: freeze(connection, [id], world.now()))
    assert verify(world.database).valid

    def work(connection: Connection) -> None:
        if missing == "entry":
            record_freeze(connection, "ledger.freeze", [id], {})
            return
        cause = Cause(EntryKind.UNFREEZE, 0, world.now())
        assert change_account(connection, id, cause.counted(False)) is not None

    world.database.write(work)
    bad = verify(world.database).first_bad
    assert bad is not None
    reason = {
        "entry": "facts state 2 of them, entries 1",
        "fact": "facts state 0 of them, entries 1",
    }
    assert (bad.table, bad.reason) == ("entry", reason[missing])


def test_an_account_opened_without_its_fact_is_found(world: World) -> None:
    dataset, analyst = world.dataset(), world.analyst()
    key = AccountKey(0, dataset.id, analyst.id)
    world.database.write(lambda connection: open_account(connection, key, allowance(1), 1))
    bad = verify(world.database).first_bad
    assert bad is not None
    assert bad.reason == "was opened without a fact"


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_damaged_page_is_named(world: World) -> None:
    world.ready()
    with world.database.read() as connection:
        pages = text("SELECT rootpage FROM sqlite_master WHERE name = 'budget_account'")
        page = connection.execute(pages).scalar_one()
    world.database.close()  # Writes SQLite's write-ahead log to the file.
    with Path(str(world.database.engine.url.database)).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 64)
    bad = verify(world.database).first_bad
    assert bad is not None
    assert (bad.table, bad.row) == ("database", "its file")
