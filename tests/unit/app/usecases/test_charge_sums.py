"""Sums of charges are read once and continued, and long reads never take all threads."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from app.contract.errors import Busy, RateLimited
from app.engine.admission import Reads
from app.usecases import charge_sums, queries
from app.usecases.charge_sums import ChargeSums
from app.usecases.pages import within
from storage.database.pages import Page
from storage.ledger.accounts import AccountRow
from storage.ledger.ledger import Reservation
from storage.people.key_scopes import WHOLE
from tests.support.databases import (
    database,
    kind,
    migrated,
    migrated_file,
    postgresql,
    url,
    world,
)
from tests.support.world import World, loss, request

__all__ = ["database", "kind", "migrated", "migrated_file", "postgresql", "url", "world"]

EDGES = b'{"query":{"kind":"statistic","statistic":"edges","mechanism":"laplace","delta":"0"}}'


class History:
    """One account, its charges, and the statements that read them."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.dataset, self.analyst = world.ready(limit=loss(10))
        self.sums = ChargeSums(world.database)
        self.rows = 0
        read = charge_sums.charges_between

        def counted(*arguments: Any) -> Any:
            rows = read(*arguments)
            self.rows += len(rows)
            return rows

        monkeypatch.setattr(charge_sums, "charges_between", counted)

    def charge(self, epsilon: str) -> Reservation:
        reserve = replace(request(self.dataset, self.analyst, loss(epsilon)), request=EDGES)
        outcome: Reservation = self.world.ledger.reserve(reserve)
        return outcome

    @property
    def account(self) -> AccountRow:
        account = self.world.ledger.account(self.dataset.id, self.analyst.id)
        assert account is not None
        return account

    def total(self, by: Any = "kind") -> list[tuple[str, int, str]]:
        points = self.sums.points(self.account, by)
        return [(one.label, one.queries, one.charged.as_dict()["epsilon"]) for one in points]


@pytest.fixture
def history(world: World, monkeypatch: pytest.MonkeyPatch) -> History:
    return History(world, monkeypatch)


def test_only_new_entries_are_read(history: History) -> None:
    assert history.total() == []
    history.charge("0.1")
    history.charge("0.2")
    assert history.total() == [("statistic", 2, "0.3")]
    history.charge("0.4")
    for _ in range(3):
        assert history.total() == [("statistic", 3, "0.7")]
    assert history.rows == 3
    assert [queries for _, queries, _ in history.total("day")] == [3]
    assert [queries for _, queries, _ in history.total("mechanism")] == [3]


@pytest.mark.parametrize("between", [True, False])
def test_a_release_takes_its_charge_away(history: History, between: bool) -> None:
    history.charge("0.1")
    cancelled = history.charge("0.2")
    if between:
        assert history.total() == [("statistic", 2, "0.3")]
    assert history.world.ledger.release(cancelled)
    assert history.total() == [("statistic", 1, "0.1")]
    assert history.account.account.charged == loss("0.1")


def test_an_account_without_a_charge_that_stands_has_no_point(history: History) -> None:
    history.world.ledger.release(history.charge("0.2"))
    assert history.total() == []


def test_a_limit_change_is_no_charge(history: History) -> None:
    history.charge("0.1")
    history.world.grant(history.dataset, history.analyst, loss(20))
    assert history.total() == [("statistic", 1, "0.1")]
    history.total()
    assert history.rows == 1


def test_sums_are_those_of_the_ledger_after_any_order(history: History) -> None:
    open_ones: list[Reservation] = []
    for step, number in zip((3, 1, 2, 5, 1, 4), count(1), strict=False):
        open_ones += [history.charge(f"0.0{number}") for _ in range(step)]
        if number % 2:
            history.world.ledger.release(open_ones.pop())
            history.total()
    (point,) = history.sums.points(history.account, "kind")
    assert point.charged == history.account.account.charged
    assert point.queries == len(open_ones)


def test_a_long_history_is_read_in_parts(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(7):
        history.charge("0.1")
    monkeypatch.setattr(charge_sums, "PAGE", 2)
    monkeypatch.setattr(charge_sums, "SECONDS", 0.0)
    for _ in range(3):
        with pytest.raises(Busy):
            history.total()
    assert history.total() == [("statistic", 7, "0.7")]
    assert history.rows == 7


def test_a_restored_account_is_summed_again(history: History) -> None:
    for _ in range(3):
        history.charge("0.1")
    account = history.account
    history.total()
    history.sums.points(replace(account, seq=account.seq - 1), "kind")
    assert history.rows == 3 + 2


def test_concurrent_requests_count_each_charge_once(history: History) -> None:
    for _ in range(40):
        history.charge("0.1")
    outcomes: list[Any] = []
    threads = [threading.Thread(target=lambda: outcomes.append(history.total())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [[("statistic", 40, "4")]] * 8
    assert history.rows == 40


def test_a_slot_is_free_again_when_nobody_reads_on() -> None:
    reads = Reads(per_caller=1, total=2)
    rows = within(reads.slot(1), iter([1, 2, 3]))
    with pytest.raises(RateLimited), reads.slot(1):
        pass
    assert next(rows) == 1
    other = within(reads.slot(2), iter([1]))
    with pytest.raises(Busy), reads.slot(3):
        pass
    assert list(other) == [1]
    with reads.slot(3):
        pass
    del rows
    gc.collect()
    unread = within(reads.slot(1), iter([1]))
    del unread
    gc.collect()
    with reads.slot(1):
        pass


@pytest.mark.parametrize(
    ("roles", "dataset", "limited"),
    [
        ({"analyst"}, None, False),
        ({"analyst"}, "github", True),
        ({"owner"}, None, True),
        ({"analyst", "owner"}, None, True),
        ({"auditor"}, None, True),
    ],
)
def test_a_history_that_must_be_sorted_takes_a_slot(
    roles: set[str], dataset: str | None, limited: bool
) -> None:
    services: Any = SimpleNamespace(
        reads=Reads(per_caller=1),
        queries=SimpleNamespace(page=lambda **_: Page([], None)),
        datasets=SimpleNamespace(find=None),
        database=SimpleNamespace(embedded=False),
    )
    caller: Any = SimpleNamespace(id=1, roles=frozenset(roles), scope=WHOLE)
    with services.reads.slot(1), pytest.raises(RateLimited) if limited else nullcontext():
        asyncio.run(queries.history(services, caller, dataset, 10, None))
