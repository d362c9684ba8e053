"""The kinds of facts, and the text of each: canonical JSON, which the chain of a stream binds.

Danger: heads of streams are published. The digest of private bytes is therefore always salted (see
``storage.journal.layouts.salted_digest``), and no fact states when work on records began or ended.

A fact about a row that can change carries the row's ``revision`` after the change. The transaction
that writes the fact raises it, so the row's lock orders facts of different streams.
"""

import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, literal_column


class FactKind(IntEnum):
    """The kinds of facts. Those from ``USER`` to below 64 are lines of the audit trail.

    Danger: the indexes ``journal_ending`` and ``journal_changes`` state these numbers.
    """

    OPENED = 1
    ADOPTED = 2
    ACCEPTED = 3
    TAKEN_OVER = 4
    ENDED = 5
    USER = 32
    KEY = 33
    DATASET = 34
    LIMIT = 36
    FREEZE = 37
    SETTINGS = 38
    HEADS = 39
    REQUEST = 44
    CERTIFICATE_KEY = 45
    # No page shows facts of the following kinds: rows that existed before the journal, the first
    # key of a user, and versions of records. Danger: the moment at which a version is ready reveals
    # how long its records took to prepare.
    UNTOLD_USER = 96
    UNTOLD_KEY = 97
    UNTOLD_DATASET = 98
    UNTOLD_VERSION = 99
    #: The fact that the service publishes heads of accounts from this start on. If a later start
    #: finds no file of heads, the file was lost.
    UNTOLD_HEADS = 103


#: The smallest number of a kind of facts that states a change, and the smallest of a kind that no
#: page shows. They are literals in the SQL text, so that the partial index ``journal_changes`` is
#: used.
FIRST_CHANGE: ColumnElement[int] = literal_column("32")
FIRST_UNTOLD: ColumnElement[int] = literal_column("64")


class Fact(NamedTuple):
    """One fact before it is linked to a stream; ``text`` is canonical JSON.

    ``subject``: 16 bytes of a query's id, 8 of another number, or the ASCII id of a key.
    ``at_us``: None for the moment at which the transaction writes its facts.
    """

    kind: FactKind
    subject: bytes
    actor: int
    text: str
    at_us: int | None = None


def canonical(values: Mapping[str, Any]) -> str:
    """JSON with sorted keys and without spaces; bytes become hexadecimal digits."""
    return json.dumps(
        values, default=bytes.hex, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )


def number_subject(number: int) -> bytes:
    """The subject of a fact about a row with this id."""
    return number.to_bytes(8, "big", signed=True)


def opened(stream: int, tips: Sequence[tuple[int, int, bytes]], lost: Any, at_us: int) -> Fact:
    """A stream begins. ``tips``: number, length and head of each stream that no other names yet.

    ``lost``: the same of the stream that the process wrote before and no longer found, or None.
    """
    values = {"lost": lost, "tips": [list(tip) for tip in tips]}
    return Fact(FactKind.OPENED, number_subject(stream), 0, canonical(values), at_us)


# The next four functions make the facts of queries, of which there are many. They put the JSON text
# together by hand, in a tenth of an encoder's time. It must equal ``canonical`` of the same values.


def accepted(query: Mapping[str, Any], amounts: Sequence[int], request: bytes) -> Fact:
    """A query is charged. ``query``: its row. ``request``: the salted digest of its request.

    The id of an API key is there if the key's own account was charged as well.
    """
    key = f'"key":"{query["limited_key"]}",' if query["limited_key"] is not None else ""
    text = (
        f'{{"charge":[{",".join(map(str, amounts))}],"dataset":{query["dataset_id"]},'
        f'"form":{query["form"]},{key}"request":"{request.hex()}",'
        f'"version":{query["dataset_version"]}}}'
    )
    actor, at_us = query["analyst_id"], query["created_us"]
    return Fact(FactKind.ACCEPTED, query["id"].bytes, actor, text, at_us)


def taken_over(query_id: UUID, analyst_id: int, attempt: int, at_us: int) -> Fact:
    """Another attempt begins under the same charge."""
    text = f'{{"attempt":{attempt}}}'
    return Fact(FactKind.TAKEN_OVER, query_id.bytes, analyst_id, text, at_us)


def ended(query_id: UUID, query: Any, attempt: int, status: int, answer: bytes) -> Fact:
    """A reply is stored. ``query``: its row after that. ``answer``: the salted digest of the reply.

    The moment is that of the row: the instant at which the engine stores every reply, whether the
    work ended early or late.
    """
    text = (
        f'{{"answer":"{answer.hex()}","attempt":{attempt},"began":{query.attempt_us},'
        f'"lease":{query.lease_until},"release":{query.release_us},"status":{status},'
        f'"version":{query.dataset_version}}}'
    )
    return Fact(FactKind.ENDED, query_id.bytes, query.analyst_id, text, query.settled_us)


def released(query_id: UUID, query: Any, at_us: int) -> Fact:
    """The charge is given back before the records are opened. ``query``: its row."""
    text = (
        f'{{"attempt":1,"lease":{query.lease_until},"released":true,'
        f'"version":{query.dataset_version}}}'
    )
    return Fact(FactKind.ENDED, query_id.bytes, query.analyst_id, text, at_us)


def changed(
    kind: FactKind,
    subject: bytes,
    actor: int,
    action: str,
    name: str,
    detail: Mapping[str, Any],
    state: Mapping[str, Any],
    revision: int | None,
) -> Fact:
    """A line of the audit trail. Pages show ``action``, ``name`` and ``detail``: public facts.

    ``state``: what the row says after the change, which verification compares. ``revision``: of
    the row after the change; None for a subject without a row.
    """
    values: dict[str, Any] = {"action": action, "detail": detail, "name": name, "state": state}
    if revision is not None:
        values["revision"] = revision
    return Fact(kind, subject, actor, canonical(values))
