"""The streams of the journal. Each connection that writes has one, and its facts form a hash chain.

A stream opens with the first fact that its connection writes. It names the tips: the streams whose
head no other stream names yet. So the chains of all streams hang together, and no process waits for
the row of another. A stream ends with its connection, and after a commit with an unknown result.

Danger: a fact belongs to the transaction of the change that it states. ``record`` keeps the facts
of a transaction until ``write``, which is called once before its commit.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, column, insert, select, update

from storage.database.database import transaction_of
from storage.database.expressions import now_us, read_now
from storage.database.statements import Each, InsertEach
from storage.database.tables import journal, journal_stream
from storage.database.types import Big, Bytes
from storage.errors import StreamAlarm
from storage.journal.facts import Fact, opened
from storage.journal.layouts import EMPTY_HEAD, fact_digest, next_head

_s, _j = journal_stream.c, journal.c

#: Writes the new length and head of a stream after a batch of facts. It updates no row if another
#: process has changed the stream, which raises an alarm.
ADVANCE = Each(
    (_s.id, _s.seq, _s.head, column("last", Big), column("next_head", Bytes)),
    lambda each: (
        update(journal_stream)
        .where(_s.id == each.id, _s.seq == each.seq, _s.head == each.head)
        .values(seq=each.last, head=each.next_head)
        .returning(_s.id)
    ),
)
FACTS = InsertEach(
    journal, ("stream", "seq", "at_us", "kind", "actor", "subject", "fact", "digest", "head")
)
#: The text of the first fact of a stream; NULL before it is written. This is a subquery, because
#: SQLite would read the whole journal for a join.
FIRST_FACT = (
    select(_j.fact)
    .where(_j.stream == _s.id, _j.seq == 1)
    .correlate(journal_stream)
    .scalar_subquery()
    .label("first")
)

#: Caches, for each database engine, what the first facts of streams say: the streams whose first
#: facts were read, each with the moment at which it opened; and the streams that these facts name,
#: each with its number of facts. First facts never change, so each is read once.
_NAMES: WeakKeyDictionary[Engine, tuple[dict[int, int], set[tuple[int, int]]]]
_NAMES = WeakKeyDictionary()
#: Two keys of ``Connection.info``, a dictionary that lives as long as the connection to the
#: database: the stream of the connection, and a lost stream that its next stream must name.
STREAM, LOST = "privypurse.stream", "privypurse.lost"


@dataclass(frozen=True, slots=True)
class Tip:
    """The number of a stream, how many facts it has, and its head."""

    stream: int
    seq: int
    head: bytes


@dataclass
class _Writing:
    """The facts of one transaction, and the stream that they go to."""

    before: Tip
    now: Tip
    facts: list[Fact] = field(default_factory=list)


def record(connection: Connection, *facts: Fact) -> None:
    """Adds facts to the transaction of ``connection``; they are written before its commit."""
    _writing(connection).facts.extend(facts)


def write(connection: Connection) -> Callable[[], None]:
    """Writes the recorded facts and advances the stream, once for all of them.

    Returns a function that checks the result; call it after ``pipelined`` ends. It raises
    StreamAlarm if the stream is not where this process left it, so that nothing is committed.
    """
    writing: _Writing | None = transaction_of(connection).memory.get(STREAM)
    if writing is None or not writing.facts:
        return _nothing
    facts, writing.facts = writing.facts, []
    now = read_now(connection) if any(fact.at_us is None for fact in facts) else 0
    seen, (seq, head) = writing.now, (writing.now.seq, writing.now.head)
    rows = []
    for kind, subject, actor, text, stated_us in facts:
        at_us = now if stated_us is None else stated_us
        digest = fact_digest(seen.stream, at_us, kind, actor, subject, text.encode())
        seq, head = seq + 1, next_head(head, digest)
        rows.append((seen.stream, seq, at_us, int(kind), actor, subject, text, digest, head))
    writing.now = Tip(seen.stream, seq, head)
    advanced = ADVANCE.of_each(connection, [(seen.stream, seen.seq, seen.head, seq, head)])
    FACTS.insert(connection, rows)

    def check() -> None:
        if len(advanced()) != 1:
            # The next transaction of this connection opens a new stream. Its first fact names the
            # lost stream, with its last known length and head, as evidence.
            connection.info[LOST] = [seen.stream, seen.seq, seen.head]
            connection.info.pop(STREAM, None)
            raise StreamAlarm("a stream of the journal is not where this process left it")

    return check


def read_tips(connection: Connection) -> list[Tip]:
    """The streams whose head no other stream names, in order of their numbers.

    A process reads the first fact of each stream once, because it never changes.
    """
    rows = connection.execute(select(_s.id, _s.opened_us, _s.seq, _s.head).order_by(_s.id)).all()
    current = {id: opened_us for id, opened_us, *_ in rows}
    opened, named = _NAMES.get(connection.engine, ({}, set()))
    if not opened.items() <= current.items():
        # Danger: a restored backup lacks streams whose first facts are in the cache. Streams that
        # only these facts named must be returned again. So the cache is emptied and all first facts
        # are read again.
        opened, named = {}, set()
    new = current.keys() - opened.keys()
    if new:
        # The cached collections are copied before they change, because another thread may be
        # reading them.
        opened, named = dict(opened), set(named)
        first_facts = select(_s.id, FIRST_FACT).where(_s.id.between(min(new), max(new)))
        for id, text in connection.execute(first_facts):
            if id in new and text is not None:
                opened[id] = current[id]
                named.update((stream, seq) for stream, seq, _ in json.loads(text).get("tips", ()))
        _NAMES[connection.engine] = opened, named
    return [
        Tip(id, seq, head) for id, _, seq, head in rows if id in opened and (id, seq) not in named
    ]


def _writing(connection: Connection) -> _Writing:
    """The facts of this transaction. The first call in a connection opens its stream."""
    transaction = transaction_of(connection)
    writing: _Writing | None = transaction.memory.get(STREAM)
    if writing is None:
        stream = connection.info.get(STREAM)
        first = None
        if stream is None:
            stream, first = _opened(connection)
        writing = _Writing(stream, stream, [] if first is None else [first])
        transaction.memory[STREAM] = writing
        transaction.before_commit.append(lambda: write(connection)())
        transaction.after_commit.append(lambda: _keep(connection, writing.now))
    return writing


def _keep(connection: Connection, stream: Tip) -> None:
    connection.info[STREAM] = stream
    connection.info.pop(LOST, None)


def _opened(connection: Connection) -> tuple[Tip, Fact]:
    tips = read_tips(connection)
    values = {"seq": 0, "head": EMPTY_HEAD, "opened_us": now_us()}
    make = insert(journal_stream).values(values).returning(_s.id, _s.opened_us)
    id, at_us = connection.execute(make).one()
    named = [(tip.stream, tip.seq, tip.head) for tip in tips]
    return Tip(id, 0, EMPTY_HEAD), opened(id, named, connection.info.get(LOST), at_us)


def _nothing() -> None:
    """Checks nothing, because nothing was written."""
