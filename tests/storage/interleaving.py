"""Every order in which the real steps of three replicas can run, with crashes and lapsed leases.

A state is what stands in the database, where each replica is, what records were opened and which
answers have left. Steps are the transactions that ``storage.ledger`` makes, run by the code that
serves (``tests.storage.stepping``), each only once for all states that agree in the database and
in the replica that moves. Names, times and hashes that mean nothing are left out of a state; a
replica's name is too. The search is breadth first, so a violation comes with a shortest path.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from accounting.errors import AccountingError
from accounting.privacy_loss import PrivacyLoss
from storage.database import Database
from storage.errors import CommitUnknown, KeyReused, LedgerAlarm, StorageError
from storage.ledger import Ledger, Replay, Reservation, Reserve
from storage.writer import Failed
from tests.storage.memory import copied, driver, memory_engine, put_back
from tests.storage.stepping import (
    LOST_UNKNOWN,
    STANDS,
    STANDS_UNKNOWN,
    Paused,
    SteppedDatabase,
    SteppedWriter,
    commits_of,
)
from tests.storage.world import (
    BODY_HASH,
    MINUTE,
    World,
    check_invariants,
    failure_body,
    loss,
    request,
)

REPLICAS, CRASHES = 3, 2
#: The key that everybody asks for, and one that competes for the room of a single charge.
KEYS = ("a", "b")
OTHER_HASH = bytes(32)

_QUERIES = "SELECT idem_key, state, attempt, lease_until > now_us(), answer, answer_status"
_CONTENT = (
    f"{_QUERIES} FROM query ORDER BY idem_key",
    "SELECT rank, charged_eps_n, lim_eps_n, frozen FROM budget_account ORDER BY id",
    "SELECT account_id, kind, idem_key, d_eps_n FROM entry LEFT JOIN query ON id = query_id "
    "ORDER BY account_id, idem_key, kind",
    "SELECT idem_key, s.attempt, s.answer_hash FROM settlement s JOIN query ON id = query_id "
    "ORDER BY idem_key",
)


class At(NamedTuple):
    """Where a replica is: in which call about which key, and what it was told so far in it."""

    phase: str = "idle"
    key: str = ""
    attempt: int = 0
    body: bytes = b""
    told: tuple[Any, ...] = ()


IDLE = At()


class Effect(NamedTuple):
    """What a step does: to the database, the replica, and what leaves the replica."""

    label: str
    crashes: int
    content: int
    at: At
    event: str = ""


class Seen(NamedTuple):
    """What has happened outside the database: draws of noise by key, answers that have left."""

    draws: tuple[int, ...] = (0,) * len(KEYS)
    left: frozenset[tuple[str, bytes]] = frozenset()


class State(NamedTuple):
    content: int
    replicas: tuple[int, ...]
    seen: Seen
    crashes: int


class Violation(AssertionError):
    """A state that must not be, and how one gets there."""


class Replica:
    """The calls of ``app.answering`` about one query, in its order."""

    def __init__(self, ledger: Ledger, asked: dict[str, Reserve], ids: dict[str, UUID]) -> None:
        self._ledger, self._asked, self._ids = ledger, asked, ids

    def choices(self, at: At) -> tuple[str, ...]:
        return {
            "idle": tuple(f"ask {key}" for key in KEYS),
            "held": ("renew", "release", "open"),
            "opened": ("renew", "settle"),
            "lost": ("replay",),
            "leaving": ("leave",),
        }.get(at.phase, (at.phase,))

    def call(self, at: At, choice: str) -> At:
        """Make the call; where the replica is when it has returned."""
        name, _, key = choice.partition(" ")
        key = key or at.key
        try:
            if name == "ask":
                outcome = self._ledger.reserve(self._asked[key])
                if isinstance(outcome, Replay):
                    return At("leaving", key, body=outcome.body)
                return At("held", key, outcome.attempt)
            if name == "renew":
                with suppress(CommitUnknown):
                    self._ledger.renew(self._held(at))
                return at
            if name == "release":
                self._ledger.release(self._held(at))
                return IDLE
            if name == "settle":
                reply = {"status": 201, "body": at.body, "release_us": 0}
                stored = self._ledger.settle(self._held(at), **reply)  # type: ignore[arg-type]
                return At("leaving", key, body=at.body) if stored else At("lost", key)
            assert name == "replay", name
            asked = self._asked[key]
            found = self._ledger.replay(asked.analyst_id, key, asked.body_hash)
            return IDLE if found is None else At("leaving", key, body=found.body)
        except LedgerAlarm as alarm:
            raise AssertionError("only the second wall stopped it") from alarm
        except (StorageError, AccountingError):
            return IDLE  # the client is told so, and comes again with the same key

    def _held(self, at: At) -> Reservation:
        return Reservation(self._ids[at.key], at.attempt, 1, 0, b"", PrivacyLoss(0))


@dataclass
class Found:
    """How much there was to see: states, steps between them, and what the database ever held.

    ``queries``: (key, state, attempt, whether its lease is alive, answer, status) of every query.
    """

    states: int = 0
    steps: int = 0
    run: int = 0
    queries: set[tuple[Any, ...]] = field(default_factory=set)


class Explorer:
    """``world`` is what seeded bugs are switched on in; ``explore`` visits every state."""

    def __init__(self, folder: Path) -> None:
        file = Database.open(f"sqlite:///{folder}/start.db", folder)
        start = World(file, folder)
        dataset, analyst = start.ready(loss(1), loss(1))
        file.close()
        asked = {key: request(dataset, analyst, loss(1), key=key) for key in KEYS}
        self._engine = memory_engine()
        self._driver = driver(self._engine)
        self._database = SteppedDatabase(self._engine)
        self._ledger = Ledger(self._database, failure_body=failure_body, lease_us=MINUTE)
        self._ledger._writer = SteppedWriter(self._database, self._ledger._commit)
        self.world: Any = SimpleNamespace(ledger=self._ledger, database=self._database)
        self._asked, self._ids = asked, dict[str, UUID]()
        self._replica = Replica(self._ledger, asked, self._ids)
        self._images: list[sqlite3.Connection] = []
        self._contents: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._places: dict[At, int] = {}
        self._at: list[At] = []
        self._histories: dict[tuple[Any, ...], list[Any]] = {(): []}
        self._effects: dict[tuple[int, int], list[Effect]] = {}
        self._lapses: dict[int, list[tuple[str, int]]] = {}
        self._good: set[tuple[int, Seen]] = set()
        with closing(sqlite3.connect(f"{folder}/start.db")) as saved:
            put_back(self._driver, saved)
        self.found = Found()

    # ------------------------------------------------------------ the search

    def explore(self, replicas: int = REPLICAS, crashes: int = CRASHES) -> Found:
        """Visit every state; Violation at the first that must not be."""
        first = State(self._content(), (self._place(IDLE),) * replicas, Seen(), crashes)
        came: dict[State, tuple[State, str] | None] = {first: None}
        waiting = deque([first])
        with commits_of(self._database):
            while waiting:
                state = waiting.popleft()
                try:
                    self._check(state)
                    for label, following in self._following(state):
                        self.found.steps += 1
                        if following not in came:
                            came[following] = state, label
                            waiting.append(following)
                except Exception as wrong:
                    where = extract_tb(wrong.__traceback__)[-1].line
                    raise Violation(f"{wrong!r} ({where}) after {_path(came, state)}") from wrong
        self.found.states = len(came)
        return self.found

    def _following(self, state: State) -> Iterator[tuple[str, State]]:
        for mover in set(state.replicas):
            others = list(state.replicas)
            others.remove(mover)
            at = self._at[mover]
            for effect in self._effects_of(state.content, mover):
                if effect.crashes > state.crashes:
                    continue
                to, seen = effect.at, state.seen
                if effect.event == "open":
                    number = KEYS.index(to.key)
                    draws = list(seen.draws)
                    draws[number] += 1
                    # No two draws of noise are alike.
                    to = to._replace(body=f"{to.key}{draws[number]}".encode())
                    seen = seen._replace(draws=tuple(draws))
                elif effect.event == "leave":
                    seen = seen._replace(left=seen.left | {(at.key, at.body)})
                places = tuple(sorted([*others, self._place(to)]))
                left = state.crashes - effect.crashes
                yield effect.label, State(effect.content, places, seen, left)
        for label, content in self._lapsed(state.content):
            yield label, state._replace(content=content)

    def _effects_of(self, content: int, place: int) -> list[Effect]:
        known = self._effects.get((content, place))
        if known is None:
            known = list(self._run(content, self._at[place]))
            self._effects[content, place] = known
        return known

    def _run(self, content: int, at: At) -> Iterator[Effect]:
        if at.phase == "leaving":
            yield Effect(f"leave {at.key}", 0, content, IDLE, "leave")
        if at != IDLE:
            yield Effect(f"crash in {at.phase} {at.key}", 1, content, IDLE)
        for choice in self._replica.choices(at):
            if choice == "leave":
                continue
            if choice == "open":
                yield Effect(f"open {at.key} {at.attempt}", 0, content, _opened(at), "open")
                continue
            for fate in (STANDS, STANDS_UNKNOWN, LOST_UNKNOWN):
                to = self._call(content, at, choice, fate)
                name = ("", ", unknown", ", undone and unknown")[fate]
                what = choice if choice.startswith("ask") else f"{choice} {at.key}{at.attempt}"
                yield Effect(what + name, int(fate != STANDS), self._content(), to)
                if not self._database.committed:
                    break  # there was no commit that could be lost

    def _call(self, content: int, at: At, choice: str, fate: int) -> At:
        """Make one step of a call."""
        self.found.run += 1
        self._restore(content)
        self._database.resume(self._histories[at.told], fate)
        try:
            return self._replica.call(at, choice)
        except Paused:
            (value,) = self._database.made
            told = (*at.told, self._meaning(value))
            self._histories.setdefault(told, [*self._histories[at.told], value])
            _, _, key = choice.partition(" ")
            return At(choice, key or at.key, at.attempt, at.body, told)

    # ------------------------------------------------------------ the database

    def _restore(self, content: int) -> None:
        put_back(self._driver, self._images[content])
        self._ids.clear()
        for key, id in self._driver.execute("SELECT idem_key, id FROM query"):
            self._ids[key] = UUID(bytes=id)

    def _content(self) -> int:
        """The number of what stands in the database now."""
        key = tuple(tuple(map(tuple, self._driver.execute(sql))) for sql in _CONTENT)
        known = self._contents.get(key)
        if known is None:
            known = self._contents[key] = len(self._images)
            self._images.append(copied(self._driver))
            self._keys.append(key)
            self.found.queries.update(key[0])
            self._check_content(key)
        return known

    def _lapsed(self, content: int) -> list[tuple[str, int]]:
        """A lease may run out at any moment, under a holder that lives as well."""
        known = self._lapses.get(content)
        if known is None:
            known = self._lapses[content] = []
            for key, state, _, alive, *_ in self._keys[content][0]:
                if state == 0 and alive:
                    self._restore(content)
                    lapse = "UPDATE query SET lease_until = 0 WHERE idem_key = ?"
                    self._driver.execute(lapse, (key,))
                    known.append((f"lapse {key}", self._content()))
        return known

    def _place(self, at: At) -> int:
        known = self._places.get(at)
        if known is None:
            known = self._places[at] = len(self._at)
            self._at.append(at)
        return known

    def _meaning(self, value: Any) -> Any:
        """What a transaction told, without the names and times that mean nothing."""
        if isinstance(value, Failed):
            return type(value.error).__name__
        if isinstance(value, Reservation):
            return value.attempt
        if isinstance(value, Replay):
            return value.body
        if isinstance(value, list):
            return tuple(map(self._meaning, value))
        if hasattr(value, "lease_until"):
            lapsed = value.lease_until <= value.now
            return value.state, value.attempt, lapsed, value.answer
        assert value is None or isinstance(value, bool), value
        return value

    # ------------------------------------------------------------ what must hold

    def _check_content(self, key: Any) -> None:
        """I1 and I2 and the chains, the answers; then I5 and I6, by asking once more."""
        before = self._images[-1]
        self._database.resume((), STANDS)
        self._database._inside = True
        try:
            check_invariants(self._database)
            for name, state, _, _, answer, status in key[0]:
                asked = self._asked[name]
                if state == 1:
                    outcome = self._ledger.reserve(_fresh(asked))
                    assert isinstance(outcome, Replay), "I5: what is settled is replayed"
                    assert (outcome.status, outcome.body) == (status, answer), "I5"
                try:
                    self._ledger.reserve(_fresh(asked, OTHER_HASH))
                except KeyReused:
                    pass
                else:
                    raise AssertionError("I6: another body under the key was accepted")
                assert self._content() == len(self._images) - 1, "I5, I6: nothing changes"
        finally:
            self._database._inside = False
            put_back(self._driver, before)

    def _check(self, state: State) -> None:
        held = [
            (at.key, at.attempt)
            for at in (self._at[place] for place in state.replicas)
            if at.phase in ("held", "opened")
        ]
        assert len(set(held)) == len(held), "an attempt has one holder"
        queries, _, entries, _ = self._keys[state.content]
        rows = {row[0]: row for row in queries}
        assert all(key in rows for key, _ in held), "I3: nothing is charged for who may open"
        if (state.content, state.seen) in self._good:
            return
        for key, draws in zip(KEYS, state.seen.draws, strict=True):
            if draws:
                paid = sum(eps for _, _, name, eps in entries if name == key)
                assert paid > 0, "I3: records were opened, and the charge does not stand"
                assert rows[key][1] != 2, "I3: records were opened, and the query is released"
        for key, body in state.seen.left:
            assert rows[key][1] == 1, "I4: an answer has left and is not stored"
            assert rows[key][4] == body, "I4: another answer has left than the one that is stored"
        self._good.add((state.content, state.seen))


def _opened(at: At) -> At:
    return At("opened", at.key, at.attempt)


def _fresh(asked: Reserve, body_hash: bytes = BODY_HASH) -> Reserve:
    """The same request as it comes once more."""
    return Reserve(
        uuid4(),
        asked.analyst_id,
        asked.dataset_id,
        asked.version,
        asked.key,
        body_hash,
        asked.charge,
        asked.request,
    )


def _path(came: dict[State, tuple[State, str] | None], state: State) -> str:
    labels: list[str] = []
    step = came[state]
    while step is not None:
        labels.append(step[1])
        step = came[step[0]]
    return " → ".join(reversed(labels))
