"""The second half of a verification: every query against its charges, its end and its answer.

Three streams in the order of query ids, walked side by side: queries, entries and settlements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, select

from accounting.account import AccountRank
from storage.assurance.verify_chains import CHARGE, RELEASE, Bad, Chains
from storage.database.expressions import uuid_bytes
from storage.database.snapshot import streamed
from storage.database.tables import dataset_version, entry, query, settlement
from storage.journal.layouts import (
    early_ending_digest,
    ending_digest,
    release_subject,
    request_subject,
)
from storage.ledger.requests import QueryState

#: No release instant lies further ahead of the moment at which its answer was stored.
LATEST_US = 7 * 86_400 * 1_000_000


class QueryRecord(NamedTuple):
    """The row of a query, with its settlement if there is one."""

    id: bytes
    analyst_id: int
    dataset_id: int
    dataset_version: int
    idem_key: str
    body_hash: bytes
    request: bytes
    eps_n: int
    delta_a: int
    state: int
    attempt: int
    attempt_us: int
    lease_until: int
    answer: Any
    answer_hash: Any
    answer_status: Any
    created_us: int
    settled_us: Any
    release_us: Any
    s_attempt: Any
    s_hash: Any
    s_us: Any
    s_digest: Any


class QueryEntry(NamedTuple):
    """An entry that names a query."""

    id: bytes
    account_id: int
    kind: int
    d_eps_n: int
    d_delta_a: int
    at_us: int
    subject: bytes | None


_q, _e, _s = query.c, entry.c, settlement.c
_QUERIES: Select[Any] = select(
    uuid_bytes(_q.id),
    *(_q[name] for name in QueryRecord._fields[1:-4]),
    *(_s.attempt, _s.answer_hash, _s.at_us, _s.digest),
).select_from(query.outerjoin(settlement, _s.query_id == _q.id))
_ENTRIES: Select[Any] = select(
    uuid_bytes(_e.query_id), *(_e[name] for name in QueryEntry._fields[1:])
).where(_e.query_id.is_not(None))

Accounts = dict[tuple[int, int, int], int]


def check_queries(
    connection: Connection,
    chains: Chains,
    concerned: ColumnElement[bool] | None,
    now_us: int | None,
) -> Bad | None:
    """The first query, charge or settlement without its counterpart, or with a wrong one.

    ``concerned``: the condition for the queries of ``chains``. ``now_us``: a query with a later
    release instant counts as running.
    """
    queries = _QUERIES.order_by(_q.id)
    entries = _ENTRIES.order_by(_e.query_id, _e.account_id, _e.kind)
    if concerned is not None:
        queries = queries.where(concerned)
        entries = entries.where(chains.entries_of_accounts())
    elif orphan := _orphan(connection):
        return orphan
    checker = _Checker(connection, chains, now_us)
    charged = _grouped(map(QueryEntry._make, streamed(connection, entries)))
    following = next(charged, None)
    for row in map(QueryRecord._make, streamed(connection, queries)):
        if following is not None and following[0] < row.id:
            break
        own: list[QueryEntry] = []
        if following is not None and following[0] == row.id:
            own, following = following[1], next(charged, None)
        if bad := checker.check(row, own):
            return bad
    if following is not None:
        first = following[1][0]
        return Bad("entry", f"account {first.account_id}, {_name(first.id)}", "names no query")
    return checker.carried()


def _orphan(connection: Connection) -> Bad | None:
    nobody = ~select(_q.id).where(_q.id == _s.query_id).exists()
    orphans = select(uuid_bytes(_s.query_id)).where(nobody)
    id = connection.execute(orphans.limit(1)).scalar_one_or_none()
    return None if id is None else Bad("settlement", _name(id), "belongs to no query")


def _grouped(rows: Iterator[QueryEntry]) -> Iterator[tuple[bytes, list[QueryEntry]]]:
    """The rows of each query together."""
    group: list[QueryEntry] = []
    for row in rows:
        if group and group[0].id != row.id:
            yield group[0].id, group
            group = []
        group.append(row)
    if group:
        yield group[0].id, group


class _Checker:
    """The values that all queries share, and the sums that the last query completes."""

    def __init__(self, connection: Connection, chains: Chains, now_us: int | None) -> None:
        self._chains, self._now_us = chains, now_us
        self._own: dict[tuple[int, int], tuple[frozenset[int], int | None]] = {}
        self._accounts: Accounts = {
            (row.rank, row.dataset_id, row.analyst_id): id for id, row in chains.rows.items()
        }
        v = dataset_version.c
        self._versions = {tuple(row) for row in connection.execute(select(v.dataset_id, v.version))}
        #: The charges of analysts before their account over all datasets was opened.
        self._before: dict[int, list[int]] = defaultdict(lambda: [0, 0])

    def check(self, row: QueryRecord, entries: list[QueryEntry]) -> Bad | None:
        """The contradiction of a query, or None."""
        reason = self._charges(row, entries) or _working(row, self._versions)
        if reason is None:
            reason = self._ending(row)
        return None if reason is None else Bad("query", _name(row.id), reason)

    def _charges(self, row: QueryRecord, entries: list[QueryEntry]) -> str | None:
        own = row.dataset_id, row.analyst_id
        if own not in self._own:
            self._own[own] = self._accounts_of(*own)
        expected, overall = self._own[own]
        eps, delta, state, created_us = row.eps_n, row.delta_a, row.state, row.created_us
        charged, released, subject = 0, 0, None
        for _, account, kind, d_eps, d_delta, at_us, bound in entries:
            if account not in expected:
                return "is charged to an account that is not its own"
            if kind == CHARGE:
                charged += 1
                if d_eps != eps or d_delta != delta:
                    return f"was charged another amount to account {account}"
                # Opening an account over all datasets charges the running queries to it.
                if at_us != created_us and not (
                    account == overall and at_us == self._chains.opened_us[account]
                ):
                    return f"was charged at another time to account {account}"
                if bound is not None:
                    subject = subject or _subject(row)
                    if bound != subject:
                        return "is not the request that was charged"
            elif kind == RELEASE:
                released += 1
                if d_eps != -eps or d_delta != -delta:
                    return f"was given back another amount on account {account}"
                if at_us != row.settled_us:
                    return f"was given back at another time on account {account}"
                if bound is not None and bound != release_subject(
                    row.id, row.dataset_version, row.lease_until
                ):
                    return "is not as it was when it was given back"
            else:
                return "is named by an entry that is neither its charge nor its release"
        # One entry of a kind an account: a constraint of the table, and the chain's digests.
        if released != (charged if state == QueryState.RELEASED else 0):
            return "is released in the ledger or in its own row, but not in both"
        return None if charged == len(expected) else self._missing(row, entries, expected, overall)

    def _accounts_of(self, dataset_id: int, analyst_id: int) -> tuple[frozenset[int], int | None]:
        keys = ((0, dataset_id, analyst_id), (1, 0, analyst_id), (2, dataset_id, 0))
        ids = frozenset(self._accounts[key] for key in keys if key in self._accounts)
        return ids, self._accounts.get(keys[1])

    def _missing(
        self,
        row: QueryRecord,
        entries: list[QueryEntry],
        expected: frozenset[int],
        overall: int | None,
    ) -> str | None:
        charged = {entry.account_id for entry in entries if entry.kind == CHARGE}
        for id in expected - charged:
            # The account over all datasets was opened with the sum of all earlier charges.
            if id != overall:
                return f"was never charged to account {id}"
            if row.state != QueryState.RELEASED:
                self._before[id][0] += row.eps_n
                self._before[id][1] += row.delta_a
        return None

    def _ending(self, row: QueryRecord) -> str | None:
        if row.state not in list(QueryState):
            return "is in a state that no statement of the ledger writes"
        if row.state == QueryState.RUNNING:
            if row.s_attempt is not None:
                return "has a settlement and is not settled"
            ended = (row.answer_hash, row.answer_status, row.settled_us, row.release_us)
            if row.answer is not None or ended != (None,) * 4:
                return "has an end and is not ended"
            return None
        if row.state == QueryState.RELEASED:
            if (row.s_attempt, row.answer, row.answer_hash, row.answer_status) != (None,) * 4:
                return "was released and has an answer"
            return None if row.release_us == row.settled_us else "was released at another time"
        if row.s_attempt is None:
            return "is settled without a settlement"
        if row.release_us > row.settled_us + LATEST_US:
            return "is to be released too late to be true"
        if self._now_us is not None and row.release_us > self._now_us:
            return None
        if sha256(row.answer).digest() != row.answer_hash:
            return "has another answer than the one that was settled"
        if (row.attempt, row.answer_hash, row.settled_us) != (row.s_attempt, row.s_hash, row.s_us):
            return "ended otherwise than its settlement says"
        if row.s_digest is not None and not _is_ending(row):
            return "ended otherwise than the digest of its settlement says"
        return None

    def carried(self) -> Bad | None:
        """Accounts over all datasets must be opened with the exact sum of earlier charges."""
        recharged: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for id, row in self._chains.rows.items():
            if row.rank == AccountRank.ANALYST_ON_DATASET:
                for part in (0, 1):
                    recharged[row.analyst_id][part] += self._chains.recharged[id][part]
        for id, row in self._chains.rows.items():
            if row.rank != AccountRank.ANALYST:
                continue
            for part in (0, 1):
                more = self._chains.carried[id][part] - self._before[id][part]
                if not 0 <= more <= recharged[row.analyst_id][part]:
                    reason = "was not opened with the sum of what was charged before"
                    return Bad("budget_account", f"account {id}", reason)
        return None


def _working(row: QueryRecord, versions: set[tuple[Any, ...]]) -> str | None:
    """The conditions on attempts and versions in every state of a query."""
    if (row.dataset_id, row.dataset_version) not in versions:
        return "reads a version that was never published"
    # Moments are compared for equality only: a clock may be set back.
    if row.attempt < 1 or (row.attempt == 1) != (row.attempt_us == row.created_us):
        return "began its attempt at another time"
    if row.state == QueryState.RELEASED and row.attempt != 1:
        return "was released by another attempt than the first"
    return None


def _subject(row: QueryRecord) -> bytes:
    return request_subject(
        *(row.id, row.analyst_id, row.dataset_id),
        *(row.idem_key.encode(), row.body_hash, row.request),
    )


def _is_ending(row: QueryRecord) -> bool:
    ended = (
        *(row.id, row.attempt, row.dataset_version, row.answer_status, row.answer_hash),
        *(row.settled_us, row.release_us),
    )
    return row.s_digest in (
        ending_digest(*ended, row.attempt_us, row.lease_until),
        early_ending_digest(*ended),  # settled before attempts and leases were bound
    )


def _name(id: bytes) -> str:
    return f"query {UUID(bytes=id)}" if len(id) == 16 else f"query {id.hex()}"
