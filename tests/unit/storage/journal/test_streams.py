"""Streams of the journal: one a connection, advanced once a transaction, chained together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, update

from storage.database.database import Database
from storage.database.tables import journal, journal_stream
from storage.errors import CommitUnknown, LedgerAlarm, StreamAlarm
from storage.journal import streams
from storage.journal.facts import Fact, FactKind, canonical, changed, number_subject
from storage.journal.layouts import EMPTY_HEAD, fact_digest, next_head
from storage.journal.streams import read_tips, record
from tests.support.effort import instructions
from tests.support.tampering import tampering


def fact(name: str) -> Fact:
    subject = number_subject(7)
    return changed(FactKind.USER, subject, 1, "user.update", name, {}, {"name": name}, 1)


def write(database: Database, *names: str) -> None:
    database.write(lambda connection: record(connection, *map(fact, names)))


def rows(database: Database) -> list[Any]:
    with database.read() as connection:
        ordered = select(journal).order_by(journal.c.stream, journal.c.seq)
        return list(connection.execute(ordered))


def stored_streams(database: Database) -> list[Any]:
    with database.read() as connection:
        return list(connection.execute(select(journal_stream).order_by(journal_stream.c.id)))


def texts(database: Database) -> list[Any]:
    return [json.loads(row.fact) for row in rows(database)]


def test_a_stream_opens_with_its_first_fact_and_is_a_chain(database: Database) -> None:
    write(database, "ada", "bob")
    write(database, "eve")
    (stream,) = stored_streams(database)
    stored = rows(database)
    assert [row.kind for row in stored] == [FactKind.OPENED, *[FactKind.USER] * 3]
    assert [row.seq for row in stored] == [1, 2, 3, 4]
    head = EMPTY_HEAD
    for row in stored:
        fields = (row.stream, row.at_us, row.kind, row.actor, row.subject, row.fact.encode())
        assert row.digest == fact_digest(*fields)
        head = next_head(head, row.digest)
        assert row.head == head
    assert (stream.seq, stream.head) == (4, head)
    assert texts(database)[0] == {"lost": None, "tips": []}


def test_a_transaction_without_facts_opens_no_stream(database: Database) -> None:
    database.write(read_tips)
    assert stored_streams(database) == []


def test_what_is_rolled_back_is_not_in_the_chain(database: Database) -> None:
    def failing(connection: Connection) -> None:
        record(connection, fact("nobody"))
        streams.write(connection)()
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            database.write(failing)
        write(database, "ada")
    assert [row.seq for row in rows(database)] == [1, 2, 3]
    assert len(stored_streams(database)) == 1


def test_another_process_opens_its_own_stream_and_names_the_first(
    database: Database, url: str, tmp_path: Any
) -> None:
    write(database, "ada")
    other = Database.open(url, tmp_path)
    write(other, "bob")
    first, second = stored_streams(database)
    assert texts(database)[2]["tips"] == [[first.id, first.seq, first.head.hex()]]
    with database.read() as connection:
        assert [tip.stream for tip in read_tips(connection)] == [second.id]
    # The first stream of facts grows again after the second has stated its end. So it is a tip
    # again (no stream states its present end), and the next stream states the ends of both.
    write(database, "eve")
    other.close()
    third = Database.open(url, tmp_path)
    write(third, "dan")
    third.close()
    named = [stream for stream, _, _ in texts(database)[-2]["tips"]]
    assert named == [first.id, second.id]


def test_a_stream_that_somebody_moved_is_an_alarm_and_is_named_as_lost(database: Database) -> None:
    write(database, "ada")
    (stream,) = stored_streams(database)
    moved = update(journal_stream).values(seq=stream.seq + 5)
    database.write(lambda connection: connection.execute(moved))
    with pytest.raises(StreamAlarm):
        write(database, "bob")
    assert "bob" not in [text.get("name") for text in texts(database)]
    write(database, "eve")
    lost = texts(database)[-2]["lost"]
    assert lost == [stream.id, stream.seq, stream.head.hex()]
    assert len(stored_streams(database)) == 2


def test_a_stream_ends_with_an_unknown_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database, "ada")

    def lost(_: Any) -> None:
        raise CommitUnknown("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr("storage.database.database._commit", lost)
        with pytest.raises(CommitUnknown):
            write(database, "bob")
    write(database, "eve")
    first, second = stored_streams(database)
    assert [row.stream for row in rows(database)] == [first.id, first.id, second.id, second.id]


@pytest.mark.parametrize(
    "change",
    [
        journal.update().values(actor=9),
        journal.delete(),
        journal_stream.update().values(head=bytes(32)),
        journal_stream.update().values(seq=0),
        journal_stream.delete(),
    ],
)
def test_the_database_refuses_to_change_what_is_written(database: Database, change: Any) -> None:
    write(database, "ada")
    before = rows(database)
    with pytest.raises(LedgerAlarm):
        database.write(lambda connection: connection.execute(change))
    assert rows(database) == before


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_tips_are_read_without_the_facts_after_the_first(
    database: Database, url: str, tmp_path: Any
) -> None:
    """The cost of reading the tips must not grow with the journal.

    They are read every few seconds, and in the transaction that opens a stream.
    """

    def effort(reader: Database) -> int:
        def tips() -> None:
            with reader.read() as connection:
                assert len(read_tips(connection)) == 1

        return instructions(reader, tips)

    write(database, "ada")
    before = effort(database)
    write(database, *map(str, range(500)))
    # A new process has not cached the first fact of any stream, so it reads the first facts alone.
    other = Database.open(url, tmp_path)
    assert effort(other) == before
    other.close()


def chained(database: Database, count: int) -> None:
    """Stores ``count`` streams of one fact each, which names the stream before as its only tip."""

    def work(connection: Connection) -> None:
        last = connection.execute(select(journal_stream.c.id)).scalars().all()[-1]
        for id in range(last + 1, last + 1 + count):
            tips = canonical({"lost": None, "tips": [[id - 1, 1, ""]]})
            ends = {"seq": 1, "head": bytes(32)}
            connection.execute(insert(journal_stream).values(id=id, opened_us=id, **ends))
            fact = {"at_us": id, "kind": 1, "actor": 0, "subject": b"", "fact": tips}
            connection.execute(insert(journal).values(stream=id, digest=bytes(32), **fact, **ends))

    database.write(work)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_first_fact_of_a_stream_is_read_once(database: Database) -> None:
    """They are as many as the connections that ever wrote, and tips are read every few seconds."""

    def read() -> None:
        with database.read() as connection:
            assert len(read_tips(connection)) == 2

    write(database, "ada")
    chained(database, 1)
    chained(database, 300)
    first, later = instructions(database, read), instructions(database, read)
    assert later < first / 2
    chained(database, 1)
    assert instructions(database, read) < later + first / 30


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_stream_that_a_restored_backup_lacks_names_no_other(database: Database, url: str) -> None:
    """A backup may be put in the place of the file while a process runs."""

    def tips() -> list[int]:
        with database.read() as connection:
            return [tip.stream for tip in read_tips(connection)]

    write(database, "ada")
    (first,) = stored_streams(database)
    chained(database, 2)
    assert tips() == [first.id, first.id + 2]
    with tampering(url) as run:
        run(journal.delete().where(journal.c.stream == first.id + 2))
        run(journal_stream.delete().where(journal_stream.c.id == first.id + 2))
    assert tips() == [first.id, first.id + 1]
