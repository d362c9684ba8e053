"""One answer per key ever leaves: fencing, takeover, replays, releases."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from storage.database import database as database_module
from storage.database import tables
from storage.errors import CommitUnknown, KeyReused, QueryReleased, StillRunning
from storage.journal.facts import FactKind
from storage.ledger.ledger import Replay, Reservation
from tests.support.blocking import BlockingLedger
from tests.support.world import (
    BODY_HASH,
    MINUTE,
    World,
    check_invariants,
    contents,
    loss,
    request,
)

OTHER_HASH = bytes(32)


def reserved(world: World, key: str | None = "k") -> tuple[Any, Any, Reservation]:
    dataset, analyst = world.ready()
    outcome = world.ledger.reserve(request(dataset, analyst, key=key))
    assert isinstance(outcome, Reservation)
    return dataset, analyst, outcome


def test_a_settled_query_replays_byte_for_byte_for_free(world: World) -> None:
    dataset, analyst, reservation = reserved(world)
    body = bytes(range(256))
    charged = world.charged(dataset, analyst)
    assert world.ledger.settle(reservation, status=201, body=body, release_us=world.now())
    expected = Replay(reservation.query_id, 201, body)
    before = contents(world.database)
    assert world.ledger.replay(analyst.id, "k", BODY_HASH) == expected
    assert world.ledger.reserve(request(dataset, analyst, loss("0.5"), key="k")) == expected
    assert contents(world.database) == before
    assert world.charged(dataset, analyst) == charged
    check_invariants(world.database)


def test_nothing_is_visible_before_the_release_instant(world: World) -> None:
    dataset, analyst, running = reserved(world)
    other, _, settled = reserved(world, key=None)
    instant = world.now() + MINUTE
    assert world.ledger.settle(settled, status=500, body=b"late", release_us=instant)
    seen = [world.queries.find(r.query_id) for r in (running, settled)]
    assert all(row is not None for row in seen)
    for row in seen:
        assert (row.status, row.release_us) == ("running", None)
        with pytest.raises(StillRunning):
            world.queries.reply(row.id)

    assert world.ledger.settle(running, status=201, body=b"early", release_us=instant)
    for call in (
        lambda: world.ledger.replay(analyst.id, "k", BODY_HASH),
        lambda: world.ledger.reserve(request(dataset, analyst, key="k")),
    ):
        with pytest.raises(StillRunning) as refusal:
            call()
        # Before the instant at which it may leave, an answer looks like a running query. A
        # ``retry_after`` with the exact rest of the time would show how long the work took.
        assert (refusal.value.id, refusal.value.retry_after) == (running.query_id, 1)
    assert other.name != dataset.name


def test_a_running_query_is_not_run_twice(world: World) -> None:
    dataset, analyst, reservation = reserved(world)
    before = contents(world.database)
    for call in (
        lambda: world.ledger.replay(analyst.id, "k", BODY_HASH),
        lambda: world.ledger.reserve(request(dataset, analyst, key="k")),
    ):
        with pytest.raises(StillRunning) as refusal:
            call()
        assert (refusal.value.id, refusal.value.retry_after) == (reservation.query_id, 1)
    assert contents(world.database) == before


@pytest.mark.parametrize("end", ["running", "settled", "released", "lapsed"])
def test_another_body_under_the_key_changes_nothing(world: World, end: str) -> None:
    dataset, analyst, reservation = reserved(world)
    if end == "settled":
        world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    elif end == "released":
        world.ledger.release(reservation)
    elif end == "lapsed":
        world.lapse()
    before = contents(world.database)
    with pytest.raises(KeyReused):
        world.ledger.replay(analyst.id, "k", OTHER_HASH)
    with pytest.raises(KeyReused):
        world.ledger.reserve(request(dataset, analyst, key="k", body_hash=OTHER_HASH))
    assert contents(world.database) == before


def test_only_the_attempt_that_holds_the_query_may_answer(world: World) -> None:
    dataset, analyst, first = reserved(world)
    charged = world.charged(dataset, analyst)
    world.lapse()
    assert world.ledger.replay(analyst.id, "k", BODY_HASH) is None
    second = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(second, Reservation)
    assert (second.query_id, second.attempt) == (first.query_id, 2)
    assert (second.receipt, second.remaining) == (first.receipt, first.remaining)
    assert second.reserved_us >= first.reserved_us
    assert world.charged(dataset, analyst) == charged
    assert not world.ledger.settle(first, status=201, body=b"first", release_us=0)
    assert world.ledger.settle(second, status=201, body=b"second", release_us=0)
    assert not world.ledger.settle(second, status=201, body=b"again", release_us=0)
    replay = world.ledger.replay(analyst.id, "k", BODY_HASH)
    assert replay == Replay(first.query_id, 201, b"second")
    check_invariants(world.database)


def test_a_lapsed_holder_may_still_answer_when_nobody_took_over(world: World) -> None:
    dataset, analyst, first = reserved(world)
    world.lapse()
    assert world.ledger.settle(first, status=201, body=b"first", release_us=0)
    outcome = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert outcome == Replay(first.query_id, 201, b"first")


@pytest.mark.parametrize("slow_one_first", [True, False])
def test_a_lease_runs_out_by_the_clock_under_a_live_holder(
    world: World, slow_one_first: bool
) -> None:
    """It works on and knows nothing: whoever comes to settle first, the last attempt answers."""
    dataset, analyst = world.ready()
    requested = request(dataset, analyst, key="k")
    hasty = BlockingLedger(world.database, lease_us=1000)
    slow = hasty.reserve(requested)
    assert isinstance(slow, Reservation)
    charged = world.charged(dataset, analyst)
    time.sleep(0.002)
    other = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(other, Reservation)
    assert (slow.attempt, other.attempt) == (1, 2)
    settles = [(slow, b"slow", False), (other, b"other", True)]
    for reservation, body, stored in settles if slow_one_first else reversed(settles):
        assert hasty.settle(reservation, status=201, body=body, release_us=0) is stored
        assert not hasty.renew(slow)
        assert not hasty.release(slow)
    assert hasty.replay(analyst.id, "k", BODY_HASH) == Replay(slow.query_id, 201, b"other")
    assert world.charged(dataset, analyst) == charged
    check_invariants(world.database)


def test_a_holder_that_shows_life_keeps_the_query(world: World) -> None:
    dataset, analyst, first = reserved(world)
    world.lapse()
    assert world.ledger.renew(first)
    with pytest.raises(StillRunning):
        world.ledger.reserve(request(dataset, analyst, key="k"))
    world.lapse()
    second = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(second, Reservation)
    before = contents(world.database)
    # The first attempt has lost the query. Its heartbeat neither gets the query back nor extends
    # the lease of the second attempt.
    assert not world.ledger.renew(first)
    assert contents(world.database) == before
    assert world.ledger.settle(second, status=201, body=b"second", release_us=0)
    assert not world.ledger.renew(second)
    check_invariants(world.database)


def test_attempts_that_lapse_never_become_a_failure(world: World) -> None:
    dataset, analyst, first = reserved(world)
    charged = world.charged(dataset, analyst)
    attempts = [first]
    for _ in range(4):
        world.lapse()
        attempt = world.ledger.reserve(request(dataset, analyst, key="k"))
        assert isinstance(attempt, Reservation)
        attempts.append(attempt)
    assert [attempt.attempt for attempt in attempts] == [1, 2, 3, 4, 5]
    *lost, last = attempts
    assert not any(
        world.ledger.settle(attempt, status=201, body=b"late", release_us=0) for attempt in lost
    )
    assert not any(world.ledger.release(attempt) for attempt in attempts)
    assert world.ledger.settle(last, status=201, body=b"answer", release_us=0)
    assert world.ledger.replay(analyst.id, "k", BODY_HASH) == Replay(first.query_id, 201, b"answer")
    assert world.charged(dataset, analyst) == charged
    check_invariants(world.database)


def test_a_release_gives_the_whole_charge_back_once(world: World) -> None:
    dataset, analyst, reservation = reserved(world)
    assert world.ledger.release(reservation)
    assert not world.ledger.release(reservation)
    assert world.charged(dataset, analyst) == (loss(0), loss(0))
    assert not world.ledger.settle(reservation, status=201, body=b"x", release_us=0)
    with pytest.raises(QueryReleased):
        world.ledger.replay(analyst.id, "k", BODY_HASH)
    with pytest.raises(QueryReleased):
        world.ledger.reserve(request(dataset, analyst, key="k"))
    row = world.queries.find(reservation.query_id)
    assert row is not None
    assert row.status == "cancelled"
    check_invariants(world.database)


def test_only_the_first_attempt_can_be_released(world: World) -> None:
    dataset, analyst, first = reserved(world)
    world.lapse()
    second = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(second, Reservation)
    before = contents(world.database)
    assert not world.ledger.release(first)
    assert not world.ledger.release(second)
    assert not world.ledger.release(replace(second, attempt=1))
    assert contents(world.database) == before


def test_a_settled_query_keeps_its_charge(world: World) -> None:
    _, _, reservation = reserved(world)
    world.ledger.settle(reservation, status=500, body=b"failed", release_us=0)
    before = contents(world.database)
    assert not world.ledger.release(reservation)
    assert contents(world.database) == before


class TestUnknownCommit:
    """The connection dies while COMMIT is under way."""

    @pytest.mark.parametrize("stands", [True, False])
    def test_a_settle_looks_again_before_anything_leaves(
        self, world: World, monkeypatch: pytest.MonkeyPatch, stands: bool
    ) -> None:
        _, _, reservation = reserved(world)

        def dying(transaction: Any) -> None:
            transaction.commit() if stands else transaction.rollback()
            raise CommitUnknown("the connection died")

        monkeypatch.setattr(database_module, "_commit", dying)
        settle = {"status": 201, "body": b"x", "release_us": 0}
        if stands:
            assert world.ledger.settle(reservation, **settle)
        else:
            with pytest.raises(CommitUnknown):
                world.ledger.settle(reservation, **settle)
        with world.database.read() as connection:
            facts = select(tables.journal).where(tables.journal.c.kind == int(FactKind.ENDED))
            stored = connection.execute(facts).all()
        assert len(stored) == stands

    def test_a_reserve_is_not_tried_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset, analyst = world.ready()
        tries = []

        def dying(transaction: Any) -> None:
            tries.append(transaction)
            transaction.commit()
            raise CommitUnknown("the connection died")

        with monkeypatch.context() as patch:
            patch.setattr(database_module, "_commit", dying)
            with pytest.raises(CommitUnknown):
                world.ledger.reserve(request(dataset, analyst, key="k"))
        assert len(tries) == 1
        # The charge is stored. Once the lease has expired, a request with the same key runs the
        # query again under this charge.
        with pytest.raises(StillRunning):
            world.ledger.reserve(request(dataset, analyst, key="k"))
        world.lapse()
        again = world.ledger.reserve(request(dataset, analyst, key="k"))
        assert isinstance(again, Reservation)
        assert again.attempt == 2
        assert world.charged(dataset, analyst) == (loss("0.1"), loss("0.1"))
        check_invariants(world.database)
