"""A batch on PostgreSQL: one statement for its reserves, one for its settles, one round trip.

The reserves run inside ``reserve_queries``, a function of the schema, which takes the locks of
the whole batch narrow before wide. Values travel as binary arrays, one a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from storage.database import statements
from storage.database.database import Again
from storage.database.statements import driver_of
from storage.errors import LedgerAlarm, NoRecords, NotFound
from storage.journal.writer import Failed
from storage.ledger.charging import refusal
from storage.ledger.requests import Reservation, Reserve, Settle

RESERVE = """
SELECT outcome, at_us, current_version, head, limit_eps, limit_delta, spent_eps, spent_delta
  FROM reserve_queries(
       %(ids)b::uuid[], %(analysts)b::bigint[], %(datasets)b::bigint[], %(versions)b::int[],
       %(keys)b::text[], %(hashes)b::bytea[], %(requests)b::bytea[], %(subjects)b::bytea[],
       %(eps)b::bigint[], %(deltas)b::bigint[], %(lease)b::bigint)
"""
SETTLE = """
WITH asked AS (
    SELECT * FROM unnest(%(ids)b::uuid[], %(attempts)b::int[], %(bodies)b::bytea[],
                         %(hashes)b::bytea[], %(statuses)b::smallint[], %(releases)b::bigint[])
               AS t (id, attempt, body, hash, status, release_us)),
done AS (
    UPDATE query SET state = 1, answer = asked.body, answer_hash = asked.hash,
           answer_status = asked.status, release_us = asked.release_us,
           settled_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
      FROM asked
     WHERE query.id = asked.id AND query.state = 0 AND query.attempt = asked.attempt
    RETURNING query.id, query.attempt, query.answer_hash, query.settled_us, query.dataset_version,
              query.answer_status, query.release_us, query.attempt_us, query.lease_until)
INSERT INTO settlement (query_id, attempt, answer_hash, at_us, digest)
SELECT id, attempt, answer_hash, settled_us, sha256(
           -- storage.journal.layouts.ending_digest, byte for byte
           '\\x00000013'::bytea || 'privypurse ending 2'::bytea
           || '\\x00000010'::bytea || uuid_send(id)
           || '\\x00000008'::bytea || int8send(attempt)
           || '\\x00000008'::bytea || int8send(dataset_version)
           || '\\x00000008'::bytea || int8send(answer_status)
           || '\\x00000020'::bytea || answer_hash
           || '\\x00000008'::bytea || int8send(settled_us)
           || '\\x00000008'::bytea || int8send(release_us)
           || '\\x00000008'::bytea || int8send(attempt_us)
           || '\\x00000008'::bytea || int8send(lease_until))
  FROM done
RETURNING query_id
"""
#: What ``reserve_queries`` says of a member.
CHARGED, KNOWN, FROZEN, EXHAUSTED, CAP_EXHAUSTED, NO_ACCOUNT, NO_RECORDS = range(7)


def run(
    connection: Connection, members: Sequence[Reserve | Settle], lease_us: int
) -> list[Reservation | bool | Failed | None]:
    """The outcomes of all members, in their order; nothing stands before the commit."""
    driver = driver_of(connection)
    outcomes: list[Reservation | bool | Failed | None] = [None] * len(members)
    # In the order of their keys: two processes that are sent the same keys insert them alike.
    reserves = sorted(
        (n for n, member in enumerate(members) if isinstance(member, Reserve)),
        key=lambda n: (members[n].analyst_id, members[n].stored_key),  # type: ignore[union-attr]
    )
    rounds = _rounds([n for n, member in enumerate(members) if isinstance(member, Settle)], members)
    several = bool(reserves) + len(rounds) > 1
    with driver.pipeline() if several else nullcontext():
        reserved = _reserve(driver, [members[n] for n in reserves], lease_us) if reserves else None
        settled = [_settle(driver, [members[n] for n in each]) for each in rounds]
    if reserved is not None:
        rows = reserved.fetchall()
        for n, row in zip(reserves, rows, strict=True):
            outcomes[n] = _outcome(members[n], row)  # type: ignore[arg-type]
    for each, cursor in zip(rounds, settled, strict=True):
        stored = {id for (id,) in cursor.fetchall()}
        for n in each:
            outcomes[n] = members[n].query_id in stored
    return outcomes


def _rounds(settles: list[int], members: Sequence[Reserve | Settle]) -> list[list[int]]:
    """Settles of one query in different rounds: one statement would not tell whose answer won."""
    rounds: list[list[int]] = []
    seen: list[set[Any]] = []
    for n in sorted(settles, key=lambda n: members[n].query_id):
        id = members[n].query_id
        free = next((i for i, ids in enumerate(seen) if id not in ids), None)
        if free is None:
            free = len(rounds)
            rounds.append([])
            seen.append(set())
        rounds[free].append(n)
        seen[free].add(id)
    return rounds


def _reserve(driver: Any, asked: Sequence[Any], lease_us: int) -> Any:
    columns = {
        "ids": [r.query_id for r in asked],
        "analysts": [r.analyst_id for r in asked],
        "datasets": [r.dataset_id for r in asked],
        "versions": [r.version for r in asked],
        "keys": [r.stored_key for r in asked],
        "hashes": [r.body_hash for r in asked],
        "requests": [r.request for r in asked],
        "subjects": [r.subject for r in asked],
        "eps": [r.charge.epsilon_nano for r in asked],
        "deltas": [r.charge.delta_atto for r in asked],
        "lease": lease_us,
    }
    return statements.executed(driver, RESERVE, columns)


def _settle(driver: Any, asked: Sequence[Any]) -> Any:
    columns = {
        "ids": [s.query_id for s in asked],
        "attempts": [s.attempt for s in asked],
        "bodies": [s.body for s in asked],
        "hashes": [sha256(s.body).digest() for s in asked],
        "statuses": [s.status for s in asked],
        "releases": [s.release_us for s in asked],
    }
    return statements.executed(driver, SETTLE, columns)


def _outcome(request: Reserve, row: tuple[Any, ...]) -> Reservation | Failed | None:
    outcome, at_us, version, head, *standing = row
    if outcome == CHARGED:
        lim_eps, lim_delta, charged_eps, charged_delta = standing
        remaining = PrivacyLoss(lim_eps - charged_eps, lim_delta - charged_delta)
        return Reservation(request.query_id, 1, version, at_us, head, remaining)
    if outcome == KNOWN:
        return None
    if outcome == NO_ACCOUNT:
        return Failed(NotFound("the analyst has no account for this dataset"))
    if outcome == NO_RECORDS:
        return Failed(NoRecords("the dataset has no records to query"))
    rank = AccountRank.DATASET if outcome == CAP_EXHAUSTED else AccountRank.ANALYST_ON_DATASET
    why = refusal(rank, outcome == FROZEN, *standing, charge=request.charge)
    if isinstance(why, LedgerAlarm):
        raise Again  # given back or granted since the guard looked
    return Failed(why)
