"""The part of a verification that compares rows with the facts of the journal.

A fact of a user, key, dataset or version states the row after its change, and the revisions of a
row have no gap, so each row must equal its last fact. Rows that existed before the journal must
equal the digest that its first stream holds of them. ``verify_queries`` compares queries with
their own facts; here is the rest of what facts state about queries.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from accounting.account import AccountRank
from storage.assurance.verify_chains import Bad
from storage.catalogue.dataset_states import dataset_state, version_state
from storage.database.adopted import COLUMNS, KEYS, digest_of_rows
from storage.database.expressions import uuid_bytes
from storage.database.tables import (
    api_key,
    budget_account,
    budget_request,
    dataset,
    dataset_version,
    entry,
    journal,
    metadata,
    query,
    users,
)
from storage.journal.facts import FactKind, canonical, number_subject
from storage.journal.layouts import EntryKind
from storage.ledger.budget_requests import request_state
from storage.ledger.freezing import OPERATOR
from storage.people.person_facts import key_state, user_state

_a, _e, _j, _q = budget_account.c, entry.c, journal.c, query.c
_ADOPTED, _ACCEPTED, _TAKEN_OVER, _ENDED = (
    int(FactKind.ADOPTED),
    int(FactKind.ACCEPTED),
    int(FactKind.TAKEN_OVER),
    int(FactKind.ENDED),
)
_USERS = (int(FactKind.USER), int(FactKind.UNTOLD_USER))
_USER_KEYS = (int(FactKind.KEY), int(FactKind.UNTOLD_KEY))
_DATASETS = (int(FactKind.DATASET), int(FactKind.UNTOLD_DATASET))
_VERSION = int(FactKind.UNTOLD_VERSION)
_LIMIT = int(FactKind.LIMIT)
_REQUEST = int(FactKind.REQUEST)
_FREEZE = int(FactKind.FREEZE)
#: For each action of a fact that freezes or unfreezes an account: the kind of the ledger entry that
#: must exist for it.
_FREEZES = {
    "ledger.freeze": int(EntryKind.FREEZE),
    "ledger.accept_rollback": int(EntryKind.UNFREEZE),
}
#: Tables whose rows from before the journal can no longer change. One digest per table covers all
#: of these rows; for queries, those that had ended before the journal.
_READ_ONLY = ("settlement", "audit", "query")

#: The key of a row: its table, and the id by which facts name the row. Facts also state the
#: revision of a row, the number of its changes. A version of a dataset's records has no revision of
#: its own, so its changes raise that of the dataset.
_Place = tuple[str, bytes]


@dataclass
class Facts:
    """What the facts that were read say about rows that may change."""

    revisions: dict[_Place, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: For each row, the last revision that facts state, and the state of the row after it. The key
    #: of a version is the id of its dataset followed by its number.
    states: dict[_Place, tuple[int, Any]] = field(default_factory=dict)
    adopted: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    first_stream: int = 0
    #: For each account, the numbers of the entries that facts name as changes of its limit.
    limits: dict[bytes, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: For each account, the last entry that a fact names, and the moment from which the account
    #: admits no charge, as this fact states it.
    ends: dict[bytes, tuple[int, Any]] = field(default_factory=dict)
    #: For each pair of an account id and a kind of entry, freeze or unfreeze: the number of facts
    #: that state such an entry of this account.
    freezes: Counter[tuple[int, int]] = field(default_factory=Counter)
    #: For each query that another process took over: the number and the moment, in microseconds, of
    #: each further attempt.
    takeovers: dict[bytes, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def note(
        self, stream: int, _seq: int, at_us: int, kind: int, _actor: int, subject: bytes, text: str
    ) -> str | None:
        """Remember one fact. Returns its contradiction in words, or None."""
        if kind in (_ACCEPTED, _ENDED):
            return None
        self.first_stream = self.first_stream or stream
        try:
            values = json.loads(text)
            if kind == _ADOPTED:
                return self._adopt(stream, subject, values)
            if kind == _TAKEN_OVER:
                self.takeovers[subject].append((_whole(values["attempt"]), at_us))
            elif kind == _LIMIT:
                seq = _whole(values["revision"])
                self.limits[subject].add(seq)
                if seq >= self.ends.get(subject, (0, None))[0]:
                    self.ends[subject] = seq, values["state"].get("until_us")
            elif kind == _FREEZE:
                entry_kind = _FREEZES[values["action"]]
                self.freezes.update((_whole(id), entry_kind) for id in values["state"]["accounts"])
            elif kind in _USERS:
                self._change("users", subject, subject, values)
            elif kind in _USER_KEYS:
                self._change("api_key", subject, subject, values)
            elif kind in _DATASETS:
                values["state"].pop("nodes", None)
                self._change("dataset", subject, subject, values)
            elif kind == _REQUEST:
                self._change("budget_request", subject, subject, values)
            elif kind == _VERSION:
                number = number_subject(values["state"]["version"])
                self._change("dataset_version", subject, subject + number, values)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return "cannot be read"
        return None

    def _adopt(self, stream: int, subject: bytes, values: Any) -> str | None:
        # Danger: a forged fact could adopt rows that a tamperer has changed. So only the first
        # stream, which the migration wrote, may adopt rows.
        if stream != self.first_stream or subject.decode() in self.adopted:
            return "adopts rows that the migration has not adopted"
        digest, salt = values["digest"], bytes.fromhex(values["salt"])
        self.adopted[subject.decode()] = values["rows"], digest, salt
        return None

    def _change(self, table: str, subject: bytes, key: bytes, values: Any) -> None:
        revision, state = _whole(values["revision"]), dict(values["state"])
        owner = "dataset" if table == "dataset_version" else table
        if revision or table != "dataset_version":
            self.revisions[owner, subject].append(revision)
        if revision >= self.states.get((table, key), (-1, None))[0]:
            self.states[table, key] = revision, state


def _whole(value: Any) -> int:
    """A whole number of a fact. Raises: ValueError for a forged value of another type."""
    if type(value) is not int:
        raise ValueError
    return value


def _follow(numbers: list[int], first: int, last: int) -> bool:
    """True if the numbers are those from ``first`` to ``last``, which a tamperer may have set."""
    return len(numbers) == last - first + 1 and numbers == list(range(first, last + 1))


def check_facts(connection: Connection, facts: Facts) -> Bad | None:
    """The first row that contradicts the facts about it, or None."""
    return (
        _check_rows(connection, facts)
        or _check_adopted(connection, facts)
        or _check_takeovers(connection, facts)
        or _check_limits(connection, facts)
        or _check_freezes(connection, facts)
        or _check_orphans(connection)
    )


def _check_rows(connection: Connection, facts: Facts) -> Bad | None:
    rows = 0
    for table, key, name, state, revision in _rows(connection):
        rows += 1
        _, stated = facts.states.get((table, key), (-1, None))
        if stated is None:
            return Bad(table, name, "has no fact in the journal")
        if canonical(state) != canonical(stated):
            return Bad(table, name, f"should be {_difference(state, stated)}")
        if revision is None:
            continue
        numbers = sorted(facts.revisions[table, key])
        # Each change of a row raises its revision by one, and facts must state every revision.
        # Revisions begin at 0 if the migration adopted the row, and otherwise at 1.
        if not _follow(numbers, numbers[0], revision) or numbers[0] not in (0, 1):
            return Bad(table, name, f"is at revision {revision}, its facts at {numbers[-1]}")
    if rows != len(facts.states):
        return _gone(connection, facts)
    return None


def _difference(state: Any, stated: Any) -> str:
    """The columns that differ, with the values of the last fact."""
    actual = json.loads(canonical(state))
    wrong = {name: value for name, value in stated.items() if actual.get(name) != value}
    return canonical(wrong) if wrong else "as its last fact says"


def _rows(connection: Connection) -> Iterator[tuple[str, bytes, str, Any, int | None]]:
    """Every row that facts state: table, key, name, state, and revision if it has one."""
    for row in connection.execute(select(users)).all():
        subject = number_subject(row.id)
        yield "users", subject, f"user {row.id}", user_state(connection, row), row.revision
    for row in connection.execute(select(api_key)).all():
        yield "api_key", row.id.encode(), f"key {row.id}", key_state(row), row.revision
    for row in connection.execute(select(dataset)).all():
        subject = number_subject(row.id)
        yield "dataset", subject, f"dataset {row.id}", dataset_state(row), row.revision
    for row in connection.execute(select(dataset_version)).all():
        key = number_subject(row.dataset_id) + number_subject(row.version)
        name = f"dataset {row.dataset_id}, version {row.version}"
        yield "dataset_version", key, name, version_state(row), None
    for row in connection.execute(select(budget_request)).all():
        name = f"request {row.id}"
        yield "budget_request", row.id.bytes, name, request_state(row), row.revision


def _gone(connection: Connection, facts: Facts) -> Bad:
    present = {(table, key) for table, key, *_ in _rows(connection)}
    table, key = min(set(facts.states) - present)
    return Bad(table, key.hex(), "is stated by the journal and is gone")


def _check_adopted(connection: Connection, facts: Facts) -> Bad | None:
    for name in _READ_ONLY:
        table = metadata.tables[name]
        rows = select(*(table.c[column] for column in COLUMNS[name]))
        if name == "query":
            # Selects the queries that had ended before the journal existed. Only they have no salt.
            rows = rows.where(table.c.salt.is_(None))
        ordered = connection.execute(rows.order_by(*(table.c[key] for key in KEYS[name])))
        count, digest, salt = facts.adopted.get(name, (0, "", b""))
        stored, actual = digest_of_rows(salt, ordered)
        if stored != count or (count and actual.hex() != digest):
            return Bad(name, "rows before the journal", "are not those that were adopted")
    return None


def _check_takeovers(connection: Connection, facts: Facts) -> Bad | None:
    """Every attempt after the first has its fact, and the last one is that of the row."""
    accepted = select(_j.subject).where(_j.kind == _ACCEPTED)
    later = select(uuid_bytes(_q.id).label("id"), _q.attempt, _q.attempt_us).where(
        _q.attempt > 1, uuid_bytes(_q.id).in_(accepted)
    )
    rows = {bytes(row.id): row for row in connection.execute(later)}
    for id in sorted(facts.takeovers.keys() | rows.keys()):
        taken, row = sorted(facts.takeovers.get(id, ())), rows.get(id)
        if row is not None and not _follow([attempt for attempt, _ in taken], 2, row.attempt):
            return Bad("query", f"query {UUID(bytes=id)}", "has other attempts than its facts")
        if row is None:
            attempts = select(_q.attempt, _q.attempt_us).where(_q.id == UUID(bytes=id))
            row = connection.execute(attempts).one_or_none()
        if row is None or (row.attempt, row.attempt_us) != taken[-1]:
            return Bad("query", f"query {UUID(bytes=id)}", f"should be at attempt {taken[-1][0]}")
    return None


def _check_limits(connection: Connection, facts: Facts) -> Bad | None:
    """An account that nobody was granted, or a change of a limit without its fact, or None.

    The operator's own changes have no such fact: their actor is 0. In a ledger from before the
    journal, facts begin with the first limit that was set afterwards.
    """
    columns = (_a.id, _a.rank, _a.dataset_id, _a.analyst_id, _a.until_us)
    accounts = {row.id: row for row in connection.execute(select(*columns).order_by(_a.id))}
    is_older = bool(facts.adopted)

    def bad(id: int, table: str, row: str, reason: str) -> Bad:
        return Bad(table, row, reason, accounts[id].dataset_id, accounts[id].analyst_id)

    for id, account in accounts.items():
        is_granted = account.rank == AccountRank.DATASET or number_subject(id) in facts.limits
        if not (is_granted or is_older):
            return bad(id, "budget_account", f"account {id}", "was opened without a fact")
        _, until_us = facts.ends.get(number_subject(id), (0, None))
        if account.until_us != until_us:
            return bad(id, "budget_account", f"account {id}", f"should end at {until_us}")
    changes = select(_e.account_id, _e.seq).where(
        _e.kind == int(EntryKind.LIMIT_CHANGE), _e.actor != OPERATOR
    )
    for id, seq in connection.execute(changes.order_by(_e.account_id, _e.seq)):
        stated = facts.limits.get(number_subject(id), set())
        is_before = is_older and seq < min(stated, default=seq + 1)
        if seq not in stated and not is_before:
            return bad(id, "entry", f"account {id}, entry {seq}", "sets a limit without a fact")
    return None


def _check_freezes(connection: Connection, facts: Facts) -> Bad | None:
    """A freeze or its end without its fact, or a fact without its entry, or None.

    In a ledger from before the journal, earlier freezes have no facts.
    """
    kinds = tuple(_FREEZES.values())
    entries = (
        select(_e.account_id, _e.kind, func.count())
        .where(_e.kind.in_(kinds))
        .group_by(_e.account_id, _e.kind)
    )
    stored = {(id, kind): count for id, kind, count in connection.execute(entries)}
    for id, kind in sorted(stored.keys() | facts.freezes.keys()):
        count, stated = stored.get((id, kind), 0), facts.freezes[id, kind]
        if count < stated or (count > stated and not facts.adopted):
            name = EntryKind(kind).name.lower()
            reason = f"facts state {stated} of them, entries {count}"
            return Bad("entry", f"account {id}, {name}", reason)
    return None


def _check_orphans(connection: Connection) -> Bad | None:
    """A fact about a query that does not exist."""
    id = uuid_bytes(_q.id)
    about = _j.kind.in_((_ACCEPTED, _TAKEN_OVER, _ENDED))
    queries = select(_q.id).where(id == _j.subject)
    orphans = select(_j.stream, _j.seq).where(about, ~queries.exists())
    if (fact := connection.execute(orphans.limit(1)).first()) is not None:
        name = f"stream {fact.stream}, fact {fact.seq}"
        return Bad("journal", name, "is about a query that is gone")
    return None
