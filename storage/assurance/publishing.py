"""Keeping the published heads, and freezing what stands before them.

One look compares every account with what was published of it, by any process: it must have moved
on through the very head that was published. Then what has moved on is published in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, event, select, tuple_

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.tables import budget_account, entry
from storage.ledger.freezing import freeze, frozen_at

#: How many heads one statement asks for.
AT_ONCE = 500

_a, _e = budget_account.c, entry.c
_ACCOUNTS: Select[Any] = select(
    _a.id, _a.seq, _a.head, _a.frozen, _a.charged_eps_n, _a.charged_delta_a
).order_by(_a.id)


class Publisher:
    """Watches the accounts of one database against one file; ``look`` is for one thread."""

    def __init__(self, database: Database, log: HeadsLog) -> None:
        self._database, self._log = database, log

    def on_disconnect(self, wake: Any) -> None:
        """Have ``wake`` called when a connection is lost: another server may answer next."""

        def lost(context: Any) -> None:
            if context.is_disconnect:
                wake()

        event.listen(self._database.engine, "handle_error", lost)

    def look(self) -> list[int]:
        """Compare, freeze what went backwards, publish the rest; the accounts newly frozen.

        Raises: Busy, OSError: then nothing is relied on that was not there before.
        """
        self._log.refresh()
        with self._database.read() as connection:
            rows = connection.execute(_ACCOUNTS).all()
            back = self._gone_back(connection, rows)
        if back:
            return self._freeze(back)
        moved = [row for row in rows if not row.frozen and self._has_moved(row)]
        if moved:
            self._log.publish([_state(row) for row in moved], self._database.now_us())
        return []

    def any_frozen(self) -> bool:
        """Whether an account is frozen, since when and why ever."""
        frozen = select(_a.id).where(_a.frozen == 1).limit(1)
        with self._database.read() as connection:
            return connection.execute(frozen).first() is not None

    def _has_moved(self, row: Row[Any]) -> bool:
        known = self._log.published.get(row.id)
        return known is None or row.seq > known.seq

    def _gone_back(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[int]:
        """The accounts that are not where they were, or beyond; all, when one is missing.

        An account that is gone was opened after what the database remembers: so much is forgotten
        that no other account can be trusted to be complete either.
        """
        published = self._log.published
        known = {row.id for row in rows}
        if not set(published) <= known | self._log.gone:
            return sorted(known)
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
        frozen = self._database.write(lambda connection: freeze(connection, accounts, at_us))
        with self._database.read() as connection:
            freezes = frozen_at(connection, accounts)
        # This file knows more than the database, so it can say what was charged in between.
        if not freezes <= self._log.marks:
            self._log.mark(freezes - self._log.marks)
        return frozen


def _forked(connection: Connection, states: Sequence[Published]) -> list[int]:
    """Those that passed the published number of entries without passing the published head."""
    forked = []
    for start in range(0, len(states), AT_ONCE):
        some = states[start : start + AT_ONCE]
        heads = select(_e.account_id, _e.head).where(
            tuple_(_e.account_id, _e.seq).in_([(state.account, state.seq) for state in some])
        )
        found = {row.account_id: row.head for row in connection.execute(heads)}
        forked += [state.account for state in some if found.get(state.account) != state.head]
    return forked


def _state(row: Row[Any]) -> Published:
    charged = PrivacyLoss(row.charged_eps_n, row.charged_delta_a)
    return Published(row.id, row.seq, row.head, charged)
