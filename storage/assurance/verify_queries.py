"""The second half of a verification: every query against its charges, its end and its answer.

It reads queries with their settlements, and entries, as two streams in the order of query ids.
"""

from collections import defaultdict
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from operator import gt, itemgetter, sub
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, literal_column, select

from accounting.account import AccountRank
from accounting.measures import MEASURES
from storage.assurance.verify_chains import CHARGE, NOT_IN_RHO, RELEASE, Amounts, Bad, Chains, added
from storage.database.expressions import uuid_bytes
from storage.database.snapshot import named, streamed
from storage.database.tables import dataset_version, entry, journal, query, settlement
from storage.journal.facts import FactKind, accepted, ended, released
from storage.journal.layouts import (
    early_ending_digest,
    ending_digest,
    release_subject,
    request_subject,
    salted_digest,
)
from storage.ledger.accounts import MOVED, AccountKey, account_of_key, charged_accounts
from storage.ledger.entries import NOTHING
from storage.ledger.requests import QueryState

#: The most microseconds from the moment at which an answer is stored to its release instant.
#: Verification reports a later instant as a fault.
LATEST_US = 7 * 86_400 * 1_000_000

_q, _e, _s = query.c, entry.c, settlement.c
_accepted, _ended = journal.alias("accepted"), journal.alias("ended")
_FACT = ("at_us", "actor", "fact")
#: Every query with its settlement and the facts that accepted and ended it, if there are any. The
#: last columns repeat the amounts of its price, one per measure of privacy loss.
_QUERIES: Select[Any] = select(
    uuid_bytes(_q.id).label("id"),
    *(column for column in _q if column is not _q.id),
    *(column.label(f"s_{column.name}") for column in _s if column is not _s.query_id),
    *(_accepted.c[name].label(f"accepted_{name}") for name in _FACT),
    *(_ended.c[name].label(f"ended_{name}") for name in _FACT),
    *(_q[measure.column].label(measure.name) for measure in MEASURES),
).select_from(
    query.outerjoin(settlement, _s.query_id == _q.id)
    .outerjoin(
        _accepted,
        (_accepted.c.subject == uuid_bytes(_q.id))
        & (_accepted.c.kind == literal_column(str(int(FactKind.ACCEPTED)))),
    )
    .outerjoin(
        _ended,
        (_ended.c.subject == uuid_bytes(_q.id))
        & (_ended.c.kind == literal_column(str(int(FactKind.ENDED)))),
    )
)
#: Every entry that charges a query or gives its charge back, with the amounts by which it changes
#: the account.
_ENTRIES: Select[Any] = select(
    uuid_bytes(_e.query_id),
    _e.account_id,
    _e.kind,
    _e.at_us,
    _e.bound,
    *(_e[name] for name in MOVED),
).where(_e.query_id.is_not(None))


def check_queries(connection: Connection, chains: Chains, now_us: int | None) -> Bad | None:
    """The first query, charge or settlement that lacks its counterpart or contradicts it.

    ``now_us``: a query with a later release instant counts as running; None for no such instant.
    """
    queries = _QUERIES.order_by(_q.id)
    entries = _ENTRIES.order_by(_e.query_id, _e.account_id, _e.kind)
    if orphan := _orphan(connection):
        return orphan
    checker = _Checker(connection, chains, now_us)
    charged = groupby(streamed(connection, entries), itemgetter(0))
    following = next(charged, None)
    for row in map(named(queries), streamed(connection, queries)):
        if following is not None and following[0] < row.id:
            break
        own: list[tuple[Any, ...]] = []
        if following is not None and following[0] == row.id:
            own, following = list(following[1]), next(charged, None)
        if bad := checker.check(row, own):
            return bad
    if following is not None:
        id, account, *_ = next(following[1])
        return Bad("entry", f"account {account}, {_name(id)}", "names no query")
    return checker.carried()


def _orphan(connection: Connection) -> Bad | None:
    nobody = ~select(_q.id).where(_q.id == _s.query_id).exists()
    orphans = select(uuid_bytes(_s.query_id)).where(nobody)
    id = connection.execute(orphans.limit(1)).scalar_one_or_none()
    return None if id is None else Bad("settlement", _name(id), "belongs to no query")


class _Checker:
    """Checks queries one by one, and adds up charges for the check after the last query."""

    def __init__(self, connection: Connection, chains: Chains, now_us: int | None) -> None:
        self._chains, self._now_us = chains, now_us
        self._accounts = {
            AccountKey(row.rank, row.dataset_id, row.analyst_id, row.key_id): id
            for id, row in chains.rows.items()
        }
        # Most queries are charged to the same accounts as a recent one, so the cache saves work.
        self._own = lru_cache(maxsize=1024)(self._accounts_of)
        v = dataset_version.c
        self._versions = {tuple(row) for row in connection.execute(select(v.dataset_id, v.version))}
        #: For each account of an analyst over all datasets, the sum of the analyst's charges from
        #: before the account was opened.
        self._before: dict[int, Amounts] = defaultdict(lambda: NOTHING)

    def check(self, row: Any, entries: list[tuple[Any, ...]]) -> Bad | None:
        """The contradiction between a query and the entries that name it, or None."""
        reason = self._charges(row, entries) or _working(row, self._versions) or self._ending(row)
        if reason is None:
            return None
        return Bad("query", _name(row.id), reason, row.dataset_id, row.analyst_id)

    def _charges(self, row: Any, entries: list[tuple[Any, ...]]) -> str | None:
        expected, overall = self._own(row.dataset_id, row.analyst_id, row.limited_key)
        stored = row[-len(MEASURES) :]
        price: Amounts = tuple(amount or 0 for amount in stored)
        charged: set[int] = set()
        released, subject = 0, None
        for _, account, kind, at_us, bound, *listed in entries:
            # If an account did not count in ρ when an entry was made, the entry has ε and δ alone.
            # Then the ρ of the query's price stands for the entry's, so that only ε and δ are
            # compared.
            in_rho = listed[2] is not None
            amounts = tuple(listed) if in_rho else (*listed[:2], *price[2:])
            if in_rho and stored[2] is None:
                return f"has no ρ and is counted in ρ on account {account}"
            if not in_rho and kind == RELEASE:
                amounts = (*listed[:2], *(-amount for amount in price[2:]))
            if account not in expected:
                return "is charged to an account that is not its own"
            if kind == CHARGE:
                charged.add(account)
                if amounts != price:
                    return f"was charged another amount to account {account}"
                # An analyst's account over all datasets may be opened while queries of the analyst
                # run. Then the account is charged for these queries when it is opened, and not when
                # they begin.
                if at_us != row.created_us and not (
                    account == overall and at_us == self._chains.sums[account].opened_us
                ):
                    return f"was charged at another time to account {account}"
                if bound is not None:
                    subject = subject or _subject(row)
                    if bound != subject:
                        return "is not the request that was charged"
            elif kind == RELEASE:
                released += 1
                if any(added(price, amounts)):
                    return f"was given back another amount on account {account}"
                if at_us != row.settled_us:
                    return f"was given back at another time on account {account}"
                if bound is not None and bound != release_subject(
                    row.id, row.dataset_version, row.lease_until
                ):
                    return "is not as it was when it was given back"
            else:
                return "is named by an entry that is neither its charge nor its release"
        # It suffices to compare the number of charges with the number of releases, which give
        # charges back. The table allows only one entry of each kind per query and account.
        if released != (len(charged) if row.state == QueryState.RELEASED else 0):
            return "is released in the ledger or in its own row, but not in both"
        for account in expected - charged:
            # The analyst's account over all datasets may be younger than this query. Then the price
            # of the query is a part of the account's opening charge, which ``carried`` compares.
            if account != overall:
                return f"was never charged to account {account}"
            if row.state != QueryState.RELEASED:
                self._before[account] = added(self._before[account], price)
        return None

    def _accounts_of(
        self, dataset_id: int, analyst_id: int, limited_key: str | None
    ) -> tuple[set[int], int | None]:
        """The accounts to which a query is charged, and the one over all datasets or None."""
        keys = charged_accounts(dataset_id, analyst_id)
        accounts = {self._accounts[key] for key in keys if key in self._accounts}
        if limited_key is not None:
            # A missing account is represented by the number 0, which no account has. So the check
            # reports that the query was never charged to the account.
            accounts.add(self._accounts.get(account_of_key(analyst_id, limited_key), 0))
        return accounts, self._accounts.get(keys[1])

    def _ending(self, row: Any) -> str | None:
        if row.state not in list(QueryState):
            return "is in a state that no statement of the ledger writes"
        if row.accepted_fact is None and (row.rho_f, row.unpriced) != (None, None):
            return "has ρ and was charged before charges were counted in ρ"
        if row.accepted_fact is not None and (wrong := _acceptance(row)):
            return wrong
        if row.state == QueryState.RUNNING:
            if row.s_attempt is not None or row.ended_fact is not None:
                return "has ended and is to run again"
            if row.salt is None:
                return "runs without its salt"
            ended = (row.answer_hash, row.answer_status, row.settled_us, row.release_us)
            if row.answer is not None or ended != (None,) * 4:
                return "has an end and is not ended"
            return None
        if row.state == QueryState.RELEASED:
            if (row.s_attempt, row.answer, row.answer_hash, row.answer_status) != (None,) * 4:
                return "was released and has an answer"
            if row.release_us != row.settled_us:
                return "was released at another time"
            return _release(row)
        if row.s_attempt is None and row.ended_fact is None:
            return "is settled without its ending"
        if None in (row.answer, row.settled_us, row.release_us):
            return "is settled without its answer or its instants"
        if row.release_us > row.settled_us + LATEST_US:
            return "is to be released too late to be true"
        if self._now_us is not None and row.release_us > self._now_us:
            return None
        if sha256(row.answer).digest() != row.answer_hash:
            return "has another answer than the one that was settled"
        if row.ended_fact is not None:
            return "has two endings" if row.s_attempt is not None else _answer(row)
        if row.salt is not None or row.form != 1:
            return "has ended before salts were written"
        settled = row.s_attempt, row.s_answer_hash, row.s_at_us
        if (row.attempt, row.answer_hash, row.settled_us) != settled:
            return "ended otherwise than its settlement says"
        if row.s_digest is not None and not _is_ending(row):
            return "ended otherwise than the digest of its settlement says"
        return None

    def carried(self) -> Bad | None:
        """The first account over all datasets whose opening charge is not the sum of earlier ones.

        Call this after the last query. Returns None if there is no such account.
        """
        recharged: dict[int, Amounts] = defaultdict(lambda: NOTHING)
        sums = self._chains.sums
        for id, row in self._chains.rows.items():
            if row.rank == AccountRank.ANALYST_ON_DATASET:
                recharged[row.analyst_id] = added(recharged[row.analyst_id], sums[id].recharged)
        for id, row in self._chains.rows.items():
            if row.rank != AccountRank.ANALYST:
                continue
            # ε and δ are compared here and ρ is not. An account on one dataset may have been
            # charged the ρ of earlier queries late. So sums of ρ over accounts may exceed sums over
            # queries.
            more = tuple(map(sub, sums[id].carried, self._before[id]))[:NOT_IN_RHO]
            most = recharged[row.analyst_id]
            if min(more) < 0 or any(map(gt, more, most)):
                reason = "was not opened with the sum of what was charged before"
                return Bad("budget_account", f"account {id}", reason)
        return None


def _working(row: Any, versions: set[tuple[Any, ...]]) -> str | None:
    """The contradiction in the attempt or the version of a query in any state, or None."""
    if (row.dataset_id, row.dataset_version) not in versions:
        return "reads a version that was never published"
    # Timestamps are compared for equality alone, because the clock may have been set back.
    if row.attempt < 1 or (row.attempt == 1) != (row.attempt_us == row.created_us):
        return "began its attempt at another time"
    if row.state == QueryState.RELEASED and row.attempt != 1:
        return "was released by another attempt than the first"
    return None


def _acceptance(row: Any) -> str | None:
    """The contradiction between a query and the fact that accepted it, or None."""
    if row.salt is None:
        return "has lost its salt"
    named = {**row._asdict(), "id": UUID(bytes=row.id)}
    amounts = [amount for amount in row[-len(MEASURES) :] if amount is not None]
    expected = accepted(named, amounts, salted_digest(row.salt, _subject(row)))
    stated = row.accepted_fact, row.accepted_actor, row.accepted_at_us
    if stated != (expected.text, expected.actor, expected.at_us):
        return "is not the query that was accepted"
    return None


def _answer(row: Any) -> str | None:
    """The contradiction between a settled query and the fact of its ending, or None."""
    if row.salt is None:
        return "has lost its salt"
    digest = salted_digest(row.salt, row.answer)
    expected = ended(UUID(bytes=row.id), row, row.attempt, row.answer_status, digest)
    stated = row.ended_fact, row.ended_actor, row.ended_at_us
    if stated != (expected.text, expected.actor, expected.at_us):
        return "ended otherwise than the fact of its ending says"
    return None


def _release(row: Any) -> str | None:
    """The contradiction between a released query and the fact of its release, or None."""
    if row.ended_fact is None:
        is_older = row.accepted_fact is None and row.salt is None and row.form == 1
        return None if is_older else "is released without its ending"
    expected = released(UUID(bytes=row.id), row, row.settled_us)
    stated = row.ended_fact, row.ended_actor, row.ended_at_us
    if stated != (expected.text, expected.actor, expected.at_us):
        return "was released otherwise than the fact of its ending says"
    return None


def _subject(row: Any) -> bytes:
    return request_subject(
        *(row.id, row.analyst_id, row.dataset_id),
        *(row.idem_key.encode(), row.body_hash, row.request),
    )


def _is_ending(row: Any) -> bool:
    ended = (
        *(row.id, row.attempt, row.dataset_version, row.answer_status, row.answer_hash),
        *(row.settled_us, row.release_us),
    )
    return row.s_digest in (
        ending_digest(*ended, row.attempt_us, row.lease_until),
        early_ending_digest(*ended),  # early versions of the service stored this digest
    )


def _name(id: bytes) -> str:
    return f"query {UUID(bytes=id)}" if len(id) == 16 else f"query {id.hex()}"
