"""Every order in which the real steps of three replicas can run, with crashes and lapsed leases.

A state is the contents of the database, the state of each replica, the records that were opened
and the answers that have left. A step is one transaction of ``storage.ledger.ledger``, run by the
code that serves (``tests.support.stepping``). States that agree in the database and in the moving
replica share their steps. A state omits names, times and hashes, because no rule reads them. The
search is breadth first, so a violation comes with a shortest path.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from accounting.account import Limit
from accounting.privacy_loss import NANO, PrivacyLoss
from storage.database.database import Database
from tests.support.contents import Contents
from tests.support.memory import driver, memory_engine, put_back
from tests.support.replicas import IDLE, KEYS, At, Replica
from tests.support.stepping import (
    LOST_UNKNOWN,
    STANDS,
    STANDS_UNKNOWN,
    Paused,
    SteppedDatabase,
    SteppedLedger,
    commits_of,
    meaning,
)
from tests.support.world import MINUTE, World, loss, request

REPLICAS, CRASHES = 3, 2
#: The limit of the account, and the charge of the query of each key. Only one of the charges fits.
ONE, ONE_EACH = Limit.of(loss(1)), {key: loss(1) for key in KEYS}
#: Limit and charges for an account that counts in ρ as well. Only one charge fits, and the query of
#: key ``b`` has no finite ε.
ONE_IN_RHO = Limit(NANO, 0, 100, 1, gaussian=True)
ONE_EACH_IN_RHO = {"a": PrivacyLoss(NANO, 0, 60), "b": PrivacyLoss(0, 0, 60, 1)}
#: Leases are longer than the test runs, so that only the search lets them expire.
LEASE = 24 * 60 * MINUTE


class Effect(NamedTuple):
    """The result of a step: the new contents, the new state of the replica, and its output."""

    label: str
    crashes: int
    content: int
    at: At
    event: str = ""


class Seen(NamedTuple):
    """Events outside the database: draws of noise by key, and answers that have left."""

    draws: tuple[int, ...] = (0,) * len(KEYS)
    answers: frozenset[tuple[str, bytes]] = frozenset()


class State(NamedTuple):
    content: int
    replicas: tuple[int, ...]
    seen: Seen
    crashes: int


class Violation(AssertionError):
    """An invalid state, with a shortest path to it."""


@dataclass
class Coverage:
    """The extent of a search: its states, the steps between them, and all rows of queries.

    ``queries``: (key, state, attempt, whether its lease is alive, answer, status) of every query.
    """

    states: int = 0
    steps: int = 0
    run: int = 0
    queries: set[tuple[Any, ...]] = field(default_factory=set)


class Explorer:
    """``explore`` visits every state; tests seed bugs into ``world`` first."""

    def __init__(
        self,
        folder: Path,
        limit: Limit = ONE,
        charges: Mapping[str, PrivacyLoss] = MappingProxyType(ONE_EACH),
    ) -> None:
        file = Database.open(f"sqlite:///{folder}/start.db", folder)
        start = World(file, folder)
        dataset, analyst = start.ready(limit, limit)
        file.close()
        requests = {key: request(dataset, analyst, charges[key], key=key) for key in KEYS}
        self._database = SteppedDatabase(memory_engine())
        with closing(sqlite3.connect(f"{folder}/start.db")) as saved:
            put_back(driver(self._database.engine), saved)
        ledger = SteppedLedger(self._database, lease_us=LEASE)
        self.world: Any = SimpleNamespace(ledger=ledger, database=self._database)
        self._contents = Contents(self._database, ledger, requests)
        self._replica = Replica(ledger, requests, self._contents.ids)
        self._places: dict[At, int] = {}
        self._at: list[At] = []
        self._histories: dict[tuple[Any, ...], list[Any]] = {(): []}
        self._effects: dict[tuple[int, int], list[Effect]] = {}
        self._good: set[tuple[int, Seen]] = set()
        self.coverage = Coverage()

    def explore(self, replicas: int = REPLICAS, crashes: int = CRASHES) -> Coverage:
        """Visit every state. Raises: Violation at the first invalid one."""
        first = State(self._contents.now(), (self._place(IDLE),) * replicas, Seen(), crashes)
        came: dict[State, tuple[State, str] | None] = {first: None}
        waiting = deque([first])
        with commits_of(self._database):
            while waiting:
                state = waiting.popleft()
                try:
                    self._check(state)
                    for label, following in self._following(state):
                        self.coverage.steps += 1
                        if following not in came:
                            came[following] = state, label
                            waiting.append(following)
                except Exception as wrong:
                    where = extract_tb(wrong.__traceback__)[-1].line
                    raise Violation(f"{wrong!r} ({where}) after {_path(came, state)}") from wrong
        self.coverage.states = len(came)
        self.coverage.queries = {query for rows in self._contents.rows for query in rows[0]}
        return self.coverage

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
                    # The answer differs from that of every earlier attempt, because each attempt
                    # draws new noise.
                    to = to._replace(body=f"{to.key}{draws[number]}".encode())
                    seen = seen._replace(draws=tuple(draws))
                elif effect.event == "leave":
                    seen = seen._replace(answers=seen.answers | {(at.key, at.body)})
                places = tuple(sorted([*others, self._place(to)]))
                remaining = state.crashes - effect.crashes
                yield effect.label, State(effect.content, places, seen, remaining)
        for label, content in self._contents.lapsed(state.content):
            yield label, state._replace(content=content)

    def _effects_of(self, content: int, place: int) -> list[Effect]:
        effects = self._effects.get((content, place))
        if effects is None:
            effects = list(self._run(content, self._at[place]))
            self._effects[content, place] = effects
        return effects

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
                committed = self._database.committed
                yield Effect(what + name, int(fate != STANDS), self._contents.now(), to)
                if not committed:
                    # The step committed nothing, so there is no COMMIT whose reply could be lost.
                    break

    def _call(self, content: int, at: At, choice: str, fate: int) -> At:
        """Make one step of a call."""
        self.coverage.run += 1
        self._contents.put_back(content)
        self._database.resume(self._histories[at.results], fate)
        try:
            return self._replica.call(at, choice)
        except Paused:
            (value,) = self._database.values
            results = (*at.results, meaning(value))
            self._histories.setdefault(results, [*self._histories[at.results], value])
            _, _, key = choice.partition(" ")
            return At(choice, key or at.key, at.attempt, at.body, results)

    def _place(self, at: At) -> int:
        number = self._places.get(at)
        if number is None:
            number = self._places[at] = len(self._at)
            self._at.append(at)
        return number

    def _check(self, state: State) -> None:
        attempts = [
            (at.key, at.attempt)
            for at in (self._at[place] for place in state.replicas)
            if at.phase in ("held", "opened")
        ]
        assert len(set(attempts)) == len(attempts), "an attempt has one holder"
        queries, _, entries, _ = self._contents.rows[state.content]
        rows = {row[0]: row for row in queries}
        assert all(key in rows for key, _ in attempts), "I3: an attempt has no charge"
        if (state.content, state.seen) in self._good:
            return
        for key, draws in zip(KEYS, state.seen.draws, strict=True):
            if draws:
                paid = sum(amount for _, _, name, amount in entries if name == key)
                assert paid > 0, "I3: records were opened without a lasting charge"
                assert rows[key][1] != 2, "I3: records were opened, and the query is released"
        for key, body in state.seen.answers:
            assert rows[key][1] == 1, "I4: an answer has left and is not stored"
            assert rows[key][4] == body, "I4: another answer has left than the one that is stored"
        self._good.add((state.content, state.seen))


def _opened(at: At) -> At:
    return At("opened", at.key, at.attempt)


def _path(came: dict[State, tuple[State, str] | None], state: State) -> str:
    labels: list[str] = []
    step = came[state]
    while step is not None:
        labels.append(step[1])
        step = came[step[0]]
    return " → ".join(reversed(labels))
