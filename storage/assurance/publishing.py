"""Publishes the heads of accounts, and freezes accounts that are behind their published heads.

``Publisher.look`` compares every account with the state that any process has published: the chain
of the account must contain the published head. Then it publishes the accounts with new entries.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, event, select, tuple_

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from storage.database.database import Database
from storage.database.tables import budget_account, entry
from storage.ledger.accounts import SUMS
from storage.ledger.freezing import freeze, frozen_at

#: The number of heads that one statement reads.
AT_ONCE = 500

_a, _e = budget_account.c, entry.c
_ACCOUNTS: Select[Any] = select(_a.id, _a.seq, _a.head, _a.frozen, *SUMS).order_by(_a.id)


class Publisher:
    """Compares the accounts of one database with one file. Only one thread may call ``look``."""

    def __init__(self, database: Database, log: HeadsLog) -> None:
        self._database, self._log = database, log

    def on_disconnect(self, wake: Any) -> None:
        """Call ``wake`` when a connection is lost, because another server may answer next."""

        def lost(context: Any) -> None:
            if context.is_disconnect:
                wake()

        event.listen(self._database.engine, "handle_error", lost)

    def look(self) -> list[int]:
        """Freeze accounts that are behind their published heads; if there are none, publish.

        Returns the newly frozen accounts. Raises: Busy, OSError; then nothing was published.
        """
        self._log.refresh()
        with self._database.read() as connection:
            rows = connection.execute(_ACCOUNTS).all()
            back = self._gone_back(connection, rows)
        if back:
            return self._freeze(back)
        last = self._log.published
        moved = [
            Published(id, seq, head, PrivacyLoss(*charged))
            for id, seq, head, frozen, *charged in rows
            if not frozen and (id not in last or seq > last[id].seq)
        ]
        if moved:
            self._log.publish(moved, self._database.now_us())
        return []

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
        frozen = self._database.write(lambda connection: freeze(connection, accounts, at_us))
        with self._database.read() as connection:
            freezes = frozen_at(connection, accounts)
        # The file is ahead of the database, so it has the charges that the database lost.
        if not freezes <= self._log.marks:
            self._log.mark(freezes - self._log.marks)
        return frozen


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
