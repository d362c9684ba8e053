"""The part of a verification that recomputes the streams of the journal.

The chain of a stream binds its facts. Each stream names the streams before it, so together they
are one history: a stream that was named, or published, cannot be missing.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, select

from storage.assurance.head_lines import StreamHeads
from storage.assurance.verify_chains import Bad
from storage.database.snapshot import streamed
from storage.database.tables import journal, journal_stream
from storage.journal.facts import FactKind, number_subject
from storage.journal.layouts import EMPTY_HEAD, fact_digest, next_head
from storage.journal.streams import FIRST_FACT

_j, _s = journal.c, journal_stream.c
_FACTS: Select[Any] = select(
    *(_j.seq, _j.at_us, _j.kind, _j.actor, _j.subject, _j.fact, _j.digest, _j.head)
).order_by(_j.seq)
_OPENED = int(FactKind.OPENED)


@dataclass
class Streams:
    """The last fact of each stream that was read, and the heads that a stream must contain."""

    heads: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    _expected: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def expect(self, stream: int, seq: int, head: bytes) -> bool:
        """Returns False if another head was expected there."""
        return self._expected.setdefault((stream, seq), head) == head

    def agrees(self, stream: int, seq: int, head: bytes) -> bool:
        """True unless another head was expected there."""
        return self._expected.pop((stream, seq), head) == head

    def missing(self) -> tuple[int, int] | None:
        """The first place of an expected head that no stream has reached."""
        places = sorted(
            place for place in self._expected if self.heads.get(place[0], (0, b""))[0] < place[1]
        )
        return places[0] if places else None


#: A function that is called with each fact of the journal: stream, number, moment in microseconds,
#: kind, actor, subject and text. It returns what is wrong with the fact in words, or None.
Note = Callable[[int, int, int, int, int, bytes, str], str | None]


def check_streams(
    connection: Connection,
    streams: Streams,
    published: StreamHeads,
    verified: StreamHeads,
    note: Note = lambda *_: None,
) -> Bad | None:
    """The first contradiction in the streams, read from the facts up to which each is verified.

    ``published``: heads that the streams must contain. ``verified`` is empty for a whole run.
    """
    for stream, (seq, head) in published.items():
        streams.expect(stream, seq, head)
    if bad := _expect_named(connection, streams):
        return bad
    rows = connection.execute(select(journal_stream).order_by(_s.id)).all()
    for row in rows:
        since = verified.get(row.id, (0, EMPTY_HEAD))
        if bad := _check_stream(connection, streams, row, since, note):
            return bad
    if (place := streams.missing()) is not None:
        return Bad("journal", _name(*place), "was published or named, and is missing")
    gone = sorted(set(verified) - {row.id for row in rows})
    if gone:
        return Bad("journal_stream", f"stream {gone[0]}", "was verified and is gone")
    if not verified:
        stray = select(_j.stream, _j.seq).where(_j.stream.not_in(select(_s.id))).limit(1)
        if (fact := connection.execute(stray).first()) is not None:
            return Bad("journal", _name(*fact), "belongs to no stream")
    return None


def _expect_named(connection: Connection, streams: Streams) -> Bad | None:
    """Expect the heads that the first fact of each stream names."""
    for row in connection.execute(select(_s.id, FIRST_FACT)):
        if row.first is None:
            return Bad("journal_stream", f"stream {row.id}", "has no first fact")
        try:
            for stream, seq, head in json.loads(row.first)["tips"]:
                if not streams.expect(stream, seq, bytes.fromhex(head)):
                    return Bad("journal", _name(row.id, 1), "names a head that never was")
        except (ValueError, KeyError, TypeError, RecursionError):
            return Bad("journal", _name(row.id, 1), "opens no stream")
    return None


def _check_stream(
    connection: Connection, streams: Streams, stream: Any, since: tuple[int, bytes], note: Note
) -> Bad | None:
    id, (last, head) = stream.id, since
    facts = _FACTS.where(_j.stream == id, _j.seq > last) if stream.seq != last else None
    for row in () if facts is None else streamed(connection, facts):
        seq, at_us, kind, actor, subject, text, digest, stored = row
        if seq != last + 1:
            return Bad("journal", _name(id, seq), f"follows fact {last}: what lay between is gone")
        last = seq
        if fact_digest(id, at_us, kind, actor, subject, text.encode()) != digest:
            return Bad("journal", _name(id, seq), "is not what its digest was made of")
        head = next_head(head, digest)
        if stored != head:
            return Bad("journal", _name(id, seq), "does not follow from the head before it")
        if not streams.agrees(id, seq, head):
            return Bad("journal", _name(id, seq), "has another head than was published or named")
        if (kind == _OPENED) != (seq == 1):
            return Bad("journal", _name(id, seq), "opens a stream, which comes first and once")
        if kind == _OPENED and (subject, at_us) != (number_subject(id), stream.opened_us):
            return Bad("journal", _name(id, seq), "opens another stream, or at another time")
        if reason := note(id, seq, at_us, kind, actor, subject, text):
            return Bad("journal", _name(id, seq), reason)
    if (stream.seq, stream.head) != (last, head):
        return Bad("journal_stream", f"stream {id}", "is not where its facts end")
    streams.heads[id] = last, head
    return None


def _name(stream: int, seq: int) -> str:
    return f"stream {stream}, fact {seq}"
