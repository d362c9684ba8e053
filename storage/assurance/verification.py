"""Recomputes the ledger: the chain and sums of every account, and the charges of every query.

The hash chain of an account binds its entries. The column ``bound`` of an entry binds the analyst
and the dataset of the account, or the request that was charged. The digest of a settlement binds
the end of its query. The hashes do not bind the working state of a running query: its lease, the
published version that it reads, and any attempt after the first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select, text

from storage.assurance.head_lines import Published, StreamHeads, Verified
from storage.assurance.verify_chains import Bad, Chains, check_chains, check_new_entries
from storage.assurance.verify_facts import Facts, check_facts
from storage.assurance.verify_queries import check_queries
from storage.assurance.verify_streams import Streams, check_streams
from storage.database.database import Database
from storage.database.expressions import read_now
from storage.database.snapshot import snapshot
from storage.database.tables import budget_account, dataset
from storage.queries.entry_pages import EntryRow, entry_with_head

__all__ = ["Bad", "Extent", "Verification", "check_receipt", "datasets_of", "verify", "verify_new"]

_a = budget_account.c


class Extent(NamedTuple):
    """The numbers of some accounts and of their entries, and one digest over their heads."""

    accounts: int
    entries: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification that began at the moment ``at_us``, microseconds.

    ``accounts``: the rows that it covered. ``whole``: False if it read only the entries after
    those that an earlier one had verified. ``first_bad``: the first row that contradicts the
    others, None if there is none. ``verified`` and ``streams``: the states of accounts and streams
    for the next incremental run.
    """

    accounts: tuple[Row[Any], ...]
    at_us: int
    whole: bool
    first_bad: Bad | None
    verified: tuple[Verified, ...] = ()
    streams: StreamHeads = field(default_factory=dict)
    _extents: dict[Hashable, Extent] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def extent_of(self, callers: Hashable, concerns: Callable[[Row[Any]], bool]) -> Extent:
        """The extent of those accounts alone for which ``concerns`` is true.

        There may be hundreds of thousands, so the extent is computed once for equal ``callers``.
        """
        if callers not in self._extents:
            self._extents[callers] = _extent(filter(concerns, self.accounts))
        return self._extents[callers]

    @property
    def valid(self) -> bool:
        return self.first_bad is None

    @property
    def extent(self) -> Extent:
        """The extent of all accounts."""
        return self.extent_of(None, lambda _row: True)


def _extent(rows: Iterable[Row[Any]]) -> Extent:
    digest, accounts, entries = sha256(), 0, 0
    for id, seq, head in map(attrgetter("id", "seq", "head"), rows):
        digest.update(id.to_bytes(8, "big") + seq.to_bytes(8, "big") + head)
        accounts, entries = accounts + 1, entries + seq
    return Extent(accounts, entries, digest.digest())


def verify(
    database: Database,
    *,
    heads: Mapping[int, Published] | None = None,
    streams: StreamHeads | None = None,
    released_only: bool = False,
) -> Verification:
    """Recompute every account and stream from its start, and compare every row with them.

    Args:
        heads: the published states by account; the chains must contain them.
        streams: the published heads of streams of the journal, which they must contain.
        released_only: treat a query as running until its release instant. Otherwise the result
            of the verification or its duration could reveal an answer before that instant.
    """
    with snapshot(database) as connection:
        if bad := _check_file(connection):
            # The rows of a damaged database file may be unreadable, so the result lists no
            # accounts.
            return Verification((), read_now(connection), True, bad)
        at_us, chains = _begin(connection)
        read, facts = Streams(), Facts()
        bad = (
            check_chains(connection, chains, heads)
            or check_streams(connection, read, streams or {}, {}, facts.note)
            or check_queries(connection, chains, at_us if released_only else None)
            or check_facts(connection, facts)
        )
        return _outcome(chains, read, at_us, True, bad)


def verify_new(
    database: Database,
    heads: Mapping[int, Published],
    verified: Mapping[int, Verified],
    streams: StreamHeads,
    verified_streams: StreamHeads,
) -> Verification:
    """Recompute the chains of accounts and streams from where they were verified."""
    with snapshot(database) as connection:
        at_us, chains = _begin(connection)
        read = Streams()
        bad = check_new_entries(connection, chains, heads, verified) or check_streams(
            connection, read, streams, verified_streams
        )
        return _outcome(chains, read, at_us, False, bad)


def _begin(connection: Connection) -> tuple[int, Chains]:
    rows = connection.execute(select(budget_account).order_by(_a.id))
    return read_now(connection), Chains({row.id: row for row in rows})


def _outcome(
    chains: Chains, read: Streams, at_us: int, whole: bool, bad: Bad | None
) -> Verification:
    rows = tuple(chains.rows.values())
    if bad is not None:
        return Verification(rows, at_us, whole, bad)
    verified = tuple(sums.verified() for sums in chains.sums.values())
    return Verification(rows, at_us, whole, None, verified, read.heads)


def _check_file(connection: Connection) -> Bad | None:
    """What SQLite itself finds wrong in the pages of its file; None on PostgreSQL."""
    if connection.dialect.name != "sqlite":
        return None
    verdict = connection.execute(text("PRAGMA quick_check(1)")).scalar_one()
    return None if verdict == "ok" else Bad("database", "its file", str(verdict))


def datasets_of(database: Database, owner_id: int) -> frozenset[int]:
    """The ids of the datasets of one owner."""
    owned = select(dataset.c.id).where(dataset.c.owner_id == owner_id)
    with database.read() as connection:
        return frozenset(connection.execute(owned).scalars())


def check_receipt(database: Database, head: bytes) -> tuple[EntryRow, Bad | None] | None:
    """The entry whose head a receipt states, and the first contradiction in its chain or None.

    Returns None if no entry has this head.
    """
    with snapshot(database) as connection:
        entry = entry_with_head(connection, head)
        if entry is None:
            return None
        own = _a.id == entry.account_id
        rows = {row.id: row for row in connection.execute(select(budget_account).where(own))}
        return entry, check_chains(connection, Chains(rows, own), None)
