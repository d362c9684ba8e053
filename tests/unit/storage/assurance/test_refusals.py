"""Refusals are counted by analyst, dataset, type and hour, and written later."""

from __future__ import annotations

import pytest

from storage.assurance import refusals
from storage.assurance.refusals import HOUR_US, RefusalRow, Refusals
from storage.errors import Busy
from tests.support.world import World


def test_counts_add_up_over_writes_and_processes(world: World) -> None:
    ana, ben = world.analyst(), world.analyst()
    one, two = Refusals(world.database), Refusals(world.database)
    for counting in (one, two, one):
        counting.count(ana.id, "d", "budget-exhausted")
        counting.count(ana.id, "d", "budget-exhausted")
        counting.count(ben.id, "", "not-found")
        counting.write()
        counting.write()
    hour = world.now() // HOUR_US * HOUR_US
    rows = one.since(hour - HOUR_US)
    assert sum(row.refusals for row in rows) == 9
    assert {(row.analyst, row.dataset, row.type) for row in rows} == {
        (ana.name, "d", "budget-exhausted"),
        (ben.name, "", "not-found"),
    }
    assert all(row.hour_us % HOUR_US == 0 for row in rows)
    assert one.since(hour + HOUR_US) == []


def test_what_could_not_be_written_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = world.analyst()
    counting = Refusals(world.database)
    counting.count(ana.id, "d", "busy")
    with monkeypatch.context() as broken:

        def busy(_work: object) -> None:
            raise Busy("not now")

        broken.setattr(world.database, "write", busy)
        with pytest.raises(Busy):
            counting.write()
    counting.count(ana.id, "d", "busy")
    counting.write()
    (row,) = counting.since(0)
    assert isinstance(row, RefusalRow)
    assert row.refusals == 2


def test_memory_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST", 2)
    ana = world.analyst()
    counting = Refusals(world.database)
    for name in ("a", "b", "c", "a"):
        counting.count(ana.id, name, "busy")
    counting.write()
    assert [(row.dataset, row.refusals) for row in counting.since(0)] == [("a", 2), ("b", 1)]
