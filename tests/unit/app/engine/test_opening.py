"""Versions are opened on a public schedule, and become readable at public instants."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from app.engine import opening
from app.engine.opening import Opener

INTERVAL = 5.0


class Row(NamedTuple):
    id: int
    version: int


class Opened:
    """The table of open versions, with the instants from which they are visible."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.visible: dict[tuple[int, int], float] = {}

    def listed(self) -> frozenset[tuple[int, int]]:
        return frozenset(self.visible)

    def get(self, *key: int) -> object | None:
        at = self.visible.get((key[0], key[1]))
        return object() if at is not None and at <= self.clock.now else None

    def forget(self, *key: int) -> None:
        self.visible.pop((key[0], key[1]), None)

    def forget_removed(self) -> None:
        """No files are removed here."""


class Clock:
    def __init__(self) -> None:
        self.now = 1002.0

    def monotonic(self) -> float:
        return self.now


class Versions:
    """Versions that take a second each to open; those in ``broken`` do not open."""

    def __init__(self, clock: Clock, *rows: Row) -> None:
        self.rows, self.broken, self.tries = list(rows), set[Row](), list[tuple[float, Row]]()
        self.opened, self._clock = Opened(clock), clock

    def needed(self, dataset_id: int | None = None) -> list[Row]:
        return [row for row in self.rows if dataset_id in (None, row.id)]

    def open(self, row: Row, *, visible_from: Callable[[], float], checked: bool) -> None:
        self.tries.append((self._clock.now, row))
        self._clock.now += 0 if checked else 1
        if row in self.broken:
            raise FileNotFoundError
        self.opened.visible[row] = visible_from()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(opening, "time", clock)
    return clock


def opener_of(versions: Any, interval: float = INTERVAL) -> Opener:
    return Opener(versions, interval)


ONE, TWO = Row(1, 1), Row(2, 4)


def test_versions_are_readable_and_ready_at_multiples_of_the_interval(clock: Clock) -> None:
    versions = Versions(clock, ONE, TWO)
    opener = opener_of(versions)
    assert not opener.is_ready()
    opener._search()  # Both versions are open at 1004 s, but readable only from 1005 s on.
    assert not opener.is_ready()
    assert opener.missing() == 2
    clock.now = 1005.0
    assert opener.is_ready()
    assert opener.missing() == 0
    assert set(versions.opened.visible.values()) == {1005.0}


def test_what_this_process_publishes_is_readable_at_once(clock: Clock) -> None:
    versions = Versions(clock, ONE, TWO)
    opener_of(versions).publish(2, 4)
    assert versions.opened.visible == {TWO: clock.now}


def test_only_the_version_just_published_opens_without_a_check(clock: Clock) -> None:
    """A running query keeps an earlier version needed, whose files may have been damaged since."""
    later = TWO._replace(version=5)
    versions = Versions(clock, TWO, later)
    opener_of(versions).publish(2, 5)
    assert set(versions.opened.visible) == {later}


def test_a_version_that_does_not_open_holds_up_no_other_and_is_tried_ever_more_rarely(
    clock: Clock,
) -> None:
    versions = Versions(clock, ONE, TWO)
    versions.broken = {ONE}
    opener = opener_of(versions, 0)
    opener._search()
    assert (opener.missing(), opener.is_ready()) == (1, True)
    assert versions.opened.get(*TWO) is not None
    start, versions.tries = clock.now, []
    while clock.now < start + 3000:
        clock.now += opening.LEAST
        opener._search()
    waits = [later[0] - sooner[0] for sooner, later in pairwise(versions.tries)]
    assert all(row == ONE for _, row in versions.tries)
    assert waits == sorted(waits)
    assert waits[0] < 3
    assert opening.LONGEST <= waits[-1] < opening.LONGEST + 3
    versions.broken = set()
    clock.now += opening.LONGEST
    opener._search()
    assert opener.missing() == 0


def test_what_queries_no_longer_need_is_closed(clock: Clock) -> None:
    versions = Versions(clock, ONE, TWO)
    opener = opener_of(versions)
    opener._search()
    versions.rows = [Row(1, 2), TWO]
    opener._search()
    assert set(versions.opened.visible) == {Row(1, 2), TWO}


def test_a_version_published_during_a_search_stays_open(clock: Clock) -> None:
    versions = Versions(clock, ONE)
    opener, rows = opener_of(versions), versions.needed

    def meanwhile(dataset_id: int | None = None) -> list[Row]:
        before = rows(dataset_id)
        if dataset_id is None:
            versions.rows = [ONE, TWO]
            opener.publish(TWO.id, TWO.version)
        return before

    versions.needed = meanwhile  # type: ignore[method-assign]
    opener._search()
    assert TWO in versions.opened.visible


def test_a_closing_service_opens_nothing_more(clock: Clock) -> None:
    versions = Versions(clock, ONE)
    opener = opener_of(versions)
    opener.start()
    opener.close()
    tried = len(versions.tries)
    opener._search()
    assert len(versions.tries) == tried
