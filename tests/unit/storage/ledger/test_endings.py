"""A query that has ended never runs again, whatever its row says."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from accounting.errors import AccountFrozen
from storage.assurance.verification import verify
from storage.database import tables
from storage.errors import LedgerAlarm, QueryReleased, StillRunning, StreamAlarm
from storage.journal import streams
from storage.journal.facts import FactKind
from storage.ledger.ledger import Replay, Reservation
from tests.support.tampering import tampering
from tests.support.world import BODY_HASH, MINUTE, World, check_invariants, contents, request

_q = tables.query.c
RESET = {
    "state": 0,
    "answer": None,
    "answer_hash": None,
    "answer_status": None,
    "settled_us": None,
    "release_us": None,
    "lease_until": 0,
}
#: These tests reset stored queries but leave their answers. On PostgreSQL a CHECK refuses that
#: until the owner of the table drops it, so they run on SQLite alone.
ON_SQLITE = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def secret_url(world: World) -> str:
    return world.database.engine.url.render_as_string(hide_password=False)


def ended(world: World, release: bool = False) -> tuple[Any, Any, Reservation]:
    dataset, analyst = world.ready()
    outcome = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(outcome, Reservation)
    if release:
        assert world.ledger.release(outcome)
    else:
        assert world.ledger.settle(outcome, status=201, body=b"an answer", release_us=0)
    return dataset, analyst, outcome


def reset(world: World, **values: Any) -> None:
    with tampering(secret_url(world)) as run:
        run(update(tables.query).values({**RESET, **values}))


def facts(world: World, kind: FactKind) -> list[Any]:
    with world.database.read() as connection:
        rows = select(tables.journal).where(tables.journal.c.kind == int(kind))
        return list(connection.execute(rows))


@pytest.mark.parametrize("path", ["reserve", "replay"])
def test_a_query_whose_row_was_reset_is_never_drawn_again(world: World, path: str) -> None:
    """Before the journal, an operator could draw a paid answer again, and nothing showed."""
    dataset, analyst, _ = ended(world)
    reset(world)
    calls = {
        "reserve": lambda: world.ledger.reserve(request(dataset, analyst, key="k")),
        "replay": lambda: world.ledger.replay(analyst.id, "k", BODY_HASH),
    }
    for _ in range(2):
        with pytest.raises(LedgerAlarm, match="lost its answer"):
            calls[path]()
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.frozen
    with pytest.raises(AccountFrozen):
        world.ledger.reserve(request(dataset, analyst, key="another"))
    result = verify(world.database)
    assert result.first_bad is not None
    assert result.first_bad.table == "query"


@ON_SQLITE
def test_the_answer_that_is_still_there_is_replayed(world: World) -> None:
    dataset, analyst, reservation = ended(world)
    reset(world, answer=b"an answer")
    expected = Replay(reservation.query_id, 201, b"an answer")
    assert world.ledger.replay(analyst.id, "k", BODY_HASH) == expected
    assert world.ledger.reserve(request(dataset, analyst, key="k")) == expected


@ON_SQLITE
def test_another_answer_in_its_place_is_an_alarm(world: World) -> None:
    _, analyst, _ = ended(world)
    reset(world, answer=b"another answer")
    with pytest.raises(LedgerAlarm, match="another answer"):
        world.ledger.replay(analyst.id, "k", BODY_HASH)


@ON_SQLITE
def test_the_release_instant_holds_for_a_row_that_was_reset(world: World) -> None:
    dataset, analyst = world.ready()
    outcome = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(outcome, Reservation)
    instant = world.now() + MINUTE
    assert world.ledger.settle(outcome, status=201, body=b"an answer", release_us=instant)
    reset(world, answer=b"an answer")
    with pytest.raises(StillRunning):
        world.ledger.replay(analyst.id, "k", BODY_HASH)


def test_a_released_query_whose_row_was_reset_runs_for_nobody(world: World) -> None:
    dataset, analyst, _ = ended(world, release=True)
    reset(world)
    with pytest.raises(QueryReleased):
        world.ledger.reserve(request(dataset, analyst, key="k"))
    assert not verify(world.database).valid


@pytest.mark.parametrize("release", [False, True])
def test_a_query_has_one_ending(world: World, release: bool) -> None:
    """The holder of a row that was reset can end it no second time."""
    _, _, reservation = ended(world, release)
    reset(world)
    before = contents(world.database, "budget_account", "entry", "audit")
    with pytest.raises(LedgerAlarm):
        world.ledger.settle(reservation, status=201, body=b"a second draw", release_us=0)
    after = contents(world.database, "budget_account", "entry", "audit")
    assert after["query"] == before["query"]
    assert len(facts(world, FactKind.ENDED)) == 1


@pytest.mark.parametrize("release", [False, True])
def test_an_ending_without_its_fact_does_not_commit(
    world: World, monkeypatch: pytest.MonkeyPatch, release: bool
) -> None:
    dataset, analyst = world.ready()
    outcome = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(outcome, Reservation)
    before = contents(world.database)

    class Failing:
        def insert(self, *_: Any) -> Any:
            raise LookupError("no fact is written")

    calls = {
        True: lambda: world.ledger.release(outcome),
        False: lambda: world.ledger.settle(outcome, status=201, body=b"x", release_us=0),
    }
    with monkeypatch.context() as patch:
        patch.setattr(streams, "FACTS", Failing())
        with pytest.raises(LookupError):
            calls[release]()
    assert contents(world.database) == before
    assert world.ledger.settle(outcome, status=201, body=b"x", release_us=0)
    check_invariants(world.database)


def test_each_step_of_a_query_is_a_fact(world: World) -> None:
    dataset, analyst = world.ready()
    first = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(first, Reservation)
    world.lapse()
    second = world.ledger.reserve(request(dataset, analyst, key="k"))
    assert isinstance(second, Reservation)
    assert world.ledger.settle(second, status=201, body=b"x", release_us=0)
    for kind in (FactKind.ACCEPTED, FactKind.TAKEN_OVER, FactKind.ENDED):
        (fact,) = facts(world, kind)
        assert (fact.subject, fact.actor) == (first.query_id.bytes, analyst.id)
    assert verify(world.database).valid


def test_equal_answers_to_equal_requests_have_different_digests(world: World) -> None:
    """Otherwise a published head would confirm a guess of an answer."""
    ended(world)
    ended(world)
    assert len({fact.fact.split("attempt")[0] for fact in facts(world, FactKind.ENDED)}) == 2
    assert len({fact.fact.split("request")[1] for fact in facts(world, FactKind.ACCEPTED)}) == 2


def test_a_stream_that_somebody_moved_freezes_the_accounts(world: World) -> None:
    dataset, analyst, _ = ended(world)
    with tampering(secret_url(world)) as run:
        run(update(tables.journal_stream).values(head=bytes(32)))
    with pytest.raises(StreamAlarm):
        world.ledger.reserve(request(dataset, analyst))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    assert account.frozen
