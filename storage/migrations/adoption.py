"""Schema 0008 takes over what earlier schemas wrote: the first stream of the journal.

Danger: nothing here may ever change, as in the migrations themselves. The encodings are repeated
for this reason; ``storage.journal.layouts`` and ``facts`` have them too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, text

from storage.database.adopted import COLUMNS, KEYS, digest_of_rows
from storage.database.expressions import read_now

OPENED, ADOPTED, USER, KEY, DATASET, VERSION = 1, 2, 96, 97, 98, 99


def adopt(connection: Connection) -> None:
    """Writes one fact per table that has rows, and one per row that may change. None if empty."""
    facts = [*_tables(connection), *_rows(connection)]
    if not facts:
        return
    at_us = read_now(connection)
    make = text(
        "INSERT INTO journal_stream (seq, head, opened_us) VALUES (0, :head, :at) RETURNING id"
    )
    stream = connection.execute(make, {"head": bytes(32), "at": at_us}).scalar_one()
    facts.insert(0, (OPENED, _number(stream), {"lost": None, "tips": []}))
    head, rows = bytes(32), []
    for seq, (kind, subject, values) in enumerate(facts, start=1):
        fact = json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        numbers = (_number(stream), _number(at_us), _number(kind), _number(0))
        fields = (b"privypurse fact 1", *numbers, subject, fact.encode())
        packed = b"".join(len(one).to_bytes(4, "big") + one for one in fields)
        digest = sha256(packed).digest()
        head = sha256(head + digest).digest()
        rows.append(
            {
                "stream": stream,
                "seq": seq,
                "at_us": at_us,
                "kind": kind,
                "actor": 0,
                "subject": subject,
                "fact": fact,
                "digest": digest,
                "head": head,
            }
        )
    journal = sa.table("journal", *map(sa.column, rows[0]))
    connection.execute(sa.insert(journal), rows)
    advance = text("UPDATE journal_stream SET seq = :seq, head = :head WHERE id = :id")
    connection.execute(advance, {"seq": len(rows), "head": head, "id": stream})


Found = Iterator[tuple[int, bytes, Mapping[str, Any]]]


def _tables(connection: Connection) -> Found:
    for name, columns in COLUMNS.items():
        salt = os.urandom(32)
        where = " WHERE state <> 0" if name == "query" else ""
        listed, key = ", ".join(columns), ", ".join(KEYS[name])
        rows = connection.execute(text(f"SELECT {listed} FROM {name}{where} ORDER BY {key}"))
        count, digest = digest_of_rows(salt, rows)
        if count:
            values = {"digest": digest.hex(), "rows": count, "salt": salt.hex(), "table": name}
            yield ADOPTED, name.encode(), values


def _rows(connection: Connection) -> Found:
    roles: dict[int, list[str]] = {}
    for user, role in connection.execute(text("SELECT user_id, role FROM user_role")):
        roles.setdefault(user, []).append(role)
    pairs = {
        user: [issuer, subject]
        for user, issuer, subject in connection.execute(
            text("SELECT user_id, issuer, subject FROM identity")
        )
    }
    for row in _all(connection, "users"):
        state = {**row, "roles": sorted(roles.get(row["id"], ())), "identity": pairs.get(row["id"])}
        yield USER, _number(row["id"]), _adopted(row["name"], state)
    for row in _all(connection, "api_key"):
        state = {**row, "secret_hash": bytes(row["secret_hash"]).hex()}
        yield KEY, row["id"].encode(), _adopted(row["id"], state)
    for row in _all(connection, "dataset"):
        for column in ("description", "domain"):
            if row[column] is not None:
                row[column] = sha256(row[column].encode()).hexdigest()
        yield DATASET, _number(row["id"]), _adopted(row["name"], row)
    names = {row["id"]: row["name"] for row in _all(connection, "dataset")}
    for row in _all(connection, "dataset_version"):
        state = {**row, "manifest_digest": None}
        yield VERSION, _number(row["dataset_id"]), _adopted(names[row["dataset_id"]], state)


def _all(connection: Connection, name: str) -> Iterator[dict[str, Any]]:
    listed, key = ", ".join(COLUMNS[name]), ", ".join(KEYS[name])
    for row in connection.execute(text(f"SELECT {listed} FROM {name} ORDER BY {key}")):
        yield dict(zip(COLUMNS[name], row, strict=True))


def _adopted(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "adopted", "detail": {}, "name": name, "revision": 0, "state": state}


def _number(number: int) -> bytes:
    return int(number).to_bytes(8, "big", signed=True)
