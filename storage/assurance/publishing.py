"""Publishes the heads of accounts, and freezes accounts that are behind their published heads.

``Publisher.look`` compares every account with the state that any process has published: the chain
of the account must contain the published head. Then it publishes the accounts with new entries.

Danger: without any published heads nothing shows whether the ledger has lost charges. A process
that finds none beside a ledger with accounts refuses charges itself until it finds some. It
writes nothing then, because other processes may have the heads and need no freeze.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Select, event, select, tuple_

from storage.assurance.head_lines import Published, StreamHeads, state_line, streams_line
from storage.assurance.heads import HeadsLog
from storage.database.database import Database
from storage.database.tables import budget_account, entry, journal
from storage.errors import StreamAlarm
from storage.journal.streams import read_tips
from storage.ledger.accounts import LIMITS, SUMS
from storage.ledger.freezing import freeze, frozen_at

#: The most accounts whose published heads one SQL statement compares with their entries. Each
#: account adds two parameters to the statement.
AT_ONCE = 500

_a, _e, _j = budget_account.c, entry.c, journal.c
_ACCOUNTS: Select[Any] = select(_a.id, _a.seq, _a.head, _a.frozen, *SUMS, *LIMITS).order_by(_a.id)


class Publisher:
    """Compares the accounts of one database with one file. Only one thread may call ``look``.

    ``deliver`` gets the lines of every publication after the files, and at the first one the
    lines of all accounts. If it returns False, they are sent again with the next lines.
    """

    def __init__(
        self,
        database: Database,
        log: HeadsLog,
        deliver: Callable[[Sequence[bytes]], bool] = lambda _lines: True,
    ) -> None:
        self._database, self._log, self._deliver = database, log, deliver
        #: For each account, the number of the last entry whose head the operator's program
        #: received.
        self._sent: dict[int, int] = {}
        self._sent_tips: StreamHeads = {}
        #: True while the ledger has accounts and this process finds no published heads. Then the
        #: process refuses charges.
        self.lacks_heads = False
        #: The monotonic time of the last comparison with the published heads, and the number of
        #: accounts that were frozen after it.
        self.looked_at: float | None = None
        self.frozen: int | None = None

    def on_disconnect(self, wake: Any) -> None:
        """Call ``wake`` when a connection is lost, because another server may answer next."""

        def lost(context: Any) -> None:
            if context.is_disconnect:
                wake()

        event.listen(self._database.engine, "handle_error", lost)

    def look(self) -> list[int]:
        """Freeze accounts that are behind their published heads; if there are none, publish.

        Returns the newly frozen accounts. Raises: Busy, OSError; the next call publishes then.
        """
        newly = self._look()
        self.looked_at = time.monotonic()
        return newly

    def _look(self) -> list[int]:
        self._log.refresh()
        with self._database.read() as connection:
            rows = connection.execute(_ACCOUNTS).all()
            tips = {tip.stream: (tip.seq, tip.head) for tip in read_tips(connection)}
            back = self._gone_back(connection, rows)
            if rows and _lost_fact(connection, self._log.streams):
                # The journal has lost a fact. It may concern any query, so all accounts are frozen.
                back = [row.id for row in rows]
        self.frozen = sum(bool(row.frozen) for row in rows)
        self.lacks_heads = bool(rows) and not self._log.exist
        if self.lacks_heads:
            return []
        if back:
            frozen = self._freeze(back)
            self.frozen += len(frozen)
            return frozen
        if not self._log.exist:
            self._log.begin(self._database.now_us())
        last = self._log.published
        states = [
            Published.of(id, seq, head, *amounts)
            for id, seq, head, frozen, *amounts in rows
            if not frozen
        ]
        moved = [
            one for one in states if one.account not in last or one.seq > last[one.account].seq
        ]
        at_us = self._database.now_us()
        try:
            self._log.publish(moved, at_us, tips)
        finally:
            # The lines about heads go to the operator's program even if a file of heads cannot be
            # written.
            self._send(states, tips, at_us)
        return []

    def _send(self, states: Sequence[Published], tips: StreamHeads, at_us: int) -> None:
        sent = self._sent
        new = [one for one in states if sent.get(one.account, -1) < one.seq]
        lines = [state_line("head", one, at_us) for one in new]
        if tips != self._sent_tips:
            lines.append(streams_line("streams", tips, at_us))
        if lines and self._deliver(lines):
            self._sent_tips = tips
            sent.update((one.account, one.seq) for one in new)

    def any_frozen(self) -> bool:
        """True if an account is frozen, for any reason."""
        frozen = select(_a.id).where(_a.frozen == 1).limit(1)
        with self._database.read() as connection:
            return connection.execute(frozen).first() is not None

    def _gone_back(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[int]:
        """The accounts whose chains lack the published head; all accounts if one is missing.

        A missing account was opened after the state that the database went back to. Then entries
        of every other account may be missing too.
        """
        published = self._log.published
        present = {row.id for row in rows}
        if not set(published) <= present | self._log.gone:
            return sorted(present)
        back, beyond = [], []
        for row in rows:
            state = published.get(row.id)
            if state is None:
                continue
            if row.seq < state.seq or (row.seq == state.seq and row.head != state.head):
                back.append(row.id)
            elif row.seq > state.seq and state.seq > 0:
                beyond.append(state)
        return sorted([*back, *_forked(connection, beyond)])

    def _freeze(self, accounts: list[int]) -> list[int]:
        at_us = self._database.now_us()
        work = partial(freeze, accounts=accounts, at_us=at_us)
        try:
            frozen = self._database.write(work)
        except StreamAlarm:
            # The database has also lost facts of the stream that this process writes, so the freeze
            # was refused. The second attempt opens a new stream and can succeed.
            frozen = self._database.write(work)
        with self._database.read() as connection:
            freezes = frozen_at(connection, accounts)
        # The files of heads contain the charges that the database lost before these freezes. They
        # record the moments of the freezes as evidence of that. ``rollback.accept`` refuses files
        # without these moments, because they may be as old as the backup.
        if not freezes <= self._log.marks:
            self._log.mark(freezes - self._log.marks)
        return frozen


def _lost_fact(connection: Connection, streams: StreamHeads) -> bool:
    """True if a published fact is missing, or has another head than the published one."""
    places = [(stream, seq) for stream, (seq, _) in streams.items()]
    facts = select(_j.stream, _j.head).where(tuple_(_j.stream, _j.seq).in_(places))
    heads = {row.stream: row.head for row in connection.execute(facts)} if places else {}
    return any(heads.get(stream) != head for stream, (_, head) in streams.items())


def _forked(connection: Connection, states: Sequence[Published]) -> list[int]:
    """The accounts with another head than the published one at the same number of entries."""
    forked = []
    for start in range(0, len(states), AT_ONCE):
        some = states[start : start + AT_ONCE]
        heads = select(_e.account_id, _e.head).where(
            tuple_(_e.account_id, _e.seq).in_([(state.account, state.seq) for state in some])
        )
        stored = {row.account_id: row.head for row in connection.execute(heads)}
        forked += [state.account for state in some if stored.get(state.account) != state.head]
    return forked
