"""A large ledger in little time: settled queries with valid chains, written in bulk."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, insert, or_, select, update

from benchmarks.accounts import ANSWER, BODY_HASH, CHARGE, REQUEST, Pair
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account, entry, query, settlement
from storage.journal.layouts import (
    EntryKind,
    ending_digest,
    entry_digest,
    next_head,
    request_subject,
)

#: Queries that are written at once: seconds of work, on a busy machine too, in one transaction.
AT_ONCE = 2_000
#: Every account of ``hot_account`` is charged for each of them.
ACCOUNTS = 3

_a = budget_account.c


def fill(database: Database, pair: Pair, queries: int) -> int:
    """So many settled queries of a pair of ``hot_account``; how many entries that made."""
    for start in range(0, queries, AT_ONCE):
        some = min(AT_ONCE, queries - start)
        database.write(lambda connection, some=some: _fill(connection, pair, some))  # type: ignore[misc]
    return ACCOUNTS * queries


def _fill(connection: Connection, pair: Pair, count: int) -> None:
    analyst, dataset = pair
    own = or_(_a.analyst_id == analyst, _a.dataset_id == dataset)
    accounts = connection.execute(select(budget_account).where(own).order_by(_a.rank)).all()
    assert len(accounts) == ACCOUNTS
    at_us = connection.execute(select(now_us())).scalar_one()
    ids = [uuid4() for _ in range(count)]
    connection.execute(insert(query), [_query(id, pair, at_us) for id in ids])
    connection.execute(insert(settlement), [_settlement(id, at_us) for id in ids])
    for account in accounts:
        rows = _entries(account, ids, pair, at_us)
        connection.execute(insert(entry), rows)
        connection.execute(
            update(budget_account)
            .where(_a.id == account.id)
            .values(
                charged_eps_n=_a.charged_eps_n + count * CHARGE.epsilon_nano,
                seq=_a.seq + count,
                head=rows[-1]["head"],
            )
        )


def _query(id: UUID, pair: Pair, at_us: int) -> dict[str, Any]:
    return {
        "id": id,
        "analyst_id": pair[0],
        "dataset_id": pair[1],
        "dataset_version": 1,
        "idem_key": id.hex,
        "body_hash": BODY_HASH,
        "request": REQUEST,
        "eps_n": CHARGE.epsilon_nano,
        "delta_a": CHARGE.delta_atto,
        "state": 1,
        "attempt": 1,
        "attempt_us": at_us,
        "lease_until": at_us,
        "answer": ANSWER,
        "answer_hash": sha256(ANSWER).digest(),
        "answer_status": 201,
        "created_us": at_us,
        "settled_us": at_us,
        "release_us": at_us,
    }


def _settlement(id: UUID, at_us: int) -> dict[str, Any]:
    hash = sha256(ANSWER).digest()
    return {
        "query_id": id,
        "attempt": 1,
        "answer_hash": hash,
        "at_us": at_us,
        "digest": ending_digest(id, 1, 1, 201, hash, at_us, at_us, (at_us, at_us)),
    }


def _entries(account: Row[Any], ids: list[UUID], pair: Pair, at_us: int) -> list[dict[str, Any]]:
    rows, head = [], account.head
    for seq, id in enumerate(ids, start=account.seq + 1):
        subject = request_subject(id, *pair, id.hex, BODY_HASH, REQUEST)
        amounts = CHARGE.epsilon_nano, CHARGE.delta_atto
        digest = entry_digest(account.id, EntryKind.CHARGE, id, pair[0], *amounts, at_us, subject)
        head = next_head(head, digest)
        rows.append(
            {
                "account_id": account.id,
                "seq": seq,
                "kind": int(EntryKind.CHARGE),
                "query_id": id,
                "actor": pair[0],
                "d_eps_n": amounts[0],
                "d_delta_a": amounts[1],
                "at_us": at_us,
                "digest": digest,
                "head": head,
                "subject": subject,
            }
        )
    return rows
