"""Any sequence of calls agrees with a reference of thirty lines, on both databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from accounting.errors import BelowSpent, BudgetExhausted, CapExhausted
from storage.errors import KeyReused, QueryReleased, StillRunning
from storage.ledger import Ledger, Replay, Reservation
from tests.storage.world import (
    MINUTE,
    World,
    check_invariants,
    failure_body,
    loss,
    request,
)

CAP = 12
HASHES = {"this": bytes(32), "other": bytes([1]) * 32}


@dataclass
class Query:
    charge: int
    body_hash: str
    attempt: int = 1
    state: str = "running"
    lapsed: bool = False
    answer: tuple[int, bytes] | None = None


@dataclass
class Reference:
    """The ledger as one would write it for a single customer with a pencil."""

    limit: dict[str, int] = field(default_factory=dict)
    queries: dict[tuple[str, str], Query] = field(default_factory=dict)

    def charged(self, *analysts: str) -> int:
        return sum(
            query.charge
            for (analyst, _), query in self.queries.items()
            if analyst in analysts and query.state != "released"
        )

    def reserve(self, analyst: str, key: str, charge: int, body_hash: str) -> object:
        query = self.queries.get((analyst, key))
        if query is None:
            if self.charged(analyst) + charge > self.limit[analyst]:
                return BudgetExhausted
            if self.charged(*self.limit) + charge > CAP:
                return CapExhausted
            self.queries[analyst, key] = Query(charge, body_hash)
            return 1
        if query.body_hash != body_hash:
            return KeyReused
        if query.state == "released":
            return QueryReleased
        if query.state == "settled":
            return query.answer
        if not query.lapsed:
            return StillRunning
        if query.attempt == 3:
            query.state, query.answer = "settled", (500, b"failed")
            return query.answer
        query.attempt, query.lapsed = query.attempt + 1, False
        return query.attempt

    def settle(self, query: Query, attempt: int, body: bytes) -> bool:
        if query.state != "running" or query.attempt != attempt:
            return False
        query.state, query.answer = "settled", (201, body)
        return True

    def release(self, query: Query, attempt: int) -> bool:
        if query.state != "running" or attempt != 1 or query.attempt != 1:
            return False
        query.state = "released"
        return True


class LedgerMachine(RuleBasedStateMachine):
    world: World

    @initialize()
    def open(self) -> None:
        self.dataset = self.world.dataset(cap=loss(CAP))
        self.analysts = {"ada": self.world.analyst(), "bob": self.world.analyst()}
        self.reference = Reference()
        self.held: list[tuple[Query, Reservation]] = []
        self.ids: dict[tuple[str, str], Any] = {}
        for name, analyst in self.analysts.items():
            self.world.grant(self.dataset, analyst, loss(8))
            self.reference.limit[name] = 8

    names = st.sampled_from(["ada", "bob"])
    keys = st.sampled_from("abcdef")

    @rule(name=names, key=keys, charge=st.integers(1, 5), body_hash=st.sampled_from(list(HASHES)))
    def reserve(self, name: str, key: str, charge: int, body_hash: str) -> None:
        expected = self.reference.reserve(name, key, charge, body_hash)
        asked = request(
            self.dataset,
            self.analysts[name],
            loss(charge),
            key=key,
            body_hash=HASHES[body_hash],
        )
        if isinstance(expected, type):
            with pytest.raises(expected):
                self.world.ledger.reserve(asked)
            return
        outcome = self.world.ledger.reserve(asked)
        if isinstance(outcome, Replay):
            status, body = expected  # type: ignore[misc]
            stored = failure_body(outcome.query_id) if status == 500 else body
            assert (outcome.status, outcome.body) == (status, stored)
            return
        assert outcome.attempt == expected
        self.held.append((self.reference.queries[name, key], outcome))

    @rule(data=st.data(), body=st.binary(max_size=3))
    def settle(self, data: st.DataObject, body: bytes) -> None:
        if self.held:
            query, reservation = data.draw(st.sampled_from(self.held))
            expected = self.reference.settle(query, reservation.attempt, body)
            settled = self.world.ledger.settle(reservation, status=201, body=body, release_us=0)
            assert settled == expected

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.held:
            query, reservation = data.draw(st.sampled_from(self.held))
            expected = self.reference.release(query, reservation.attempt)
            assert self.world.ledger.release(reservation) == expected

    @rule()
    def lapse(self) -> None:
        self.world.lapse()
        for query in self.reference.queries.values():
            query.lapsed = True

    @rule(name=names, limit=st.integers(0, 10))
    def change_limit(self, name: str, limit: int) -> None:
        analyst = self.analysts[name]
        if limit < self.reference.charged(name):
            with pytest.raises(BelowSpent) as refusal:
                self.world.grant(self.dataset, analyst, loss(limit))
            assert refusal.value.spent == loss(self.reference.charged(name))
            return
        self.world.grant(self.dataset, analyst, loss(limit))
        self.reference.limit[name] = limit

    @rule()
    def restart(self) -> None:
        self.world.database.engine.dispose()
        self.world.ledger = Ledger(self.world.database, failure_body=failure_body, lease_us=MINUTE)

    @invariant()
    def the_books_agree(self) -> None:
        if not hasattr(self, "dataset"):
            return
        for name, analyst in self.analysts.items():
            own, _cap = self.world.charged(self.dataset, analyst)
            assert own == loss(self.reference.charged(name))
        cap = self.world.ledger.cap(self.dataset.id).account.charged
        assert cap == loss(self.reference.charged(*self.analysts))

    def teardown(self) -> None:
        check_invariants(self.world.database)


def test_the_ledger_agrees_with_the_reference(world: World) -> None:
    class Machine(LedgerMachine):
        pass

    Machine.world = world
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
