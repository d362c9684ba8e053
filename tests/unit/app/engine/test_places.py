"""Slots: the order in which queries begin follows from instants, not from run times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from app.engine.places import Places

INTERVAL = 0.2
#: The possible instants; on a busy machine the first ones are missed.
POWERS = tuple(2**power for power in range(10))


def run(story: Callable[[Places], Coroutine[Any, Any, None]], count: int, interval: float) -> None:
    async def scenario() -> None:
        await story(Places(count, interval))

    asyncio.run(scenario())


def powers(begun: float, instant: float) -> float:
    """The number of intervals between; a power of two if nothing else is revealed."""
    return round((instant - begun) / INTERVAL, 6)


@pytest.mark.parametrize("work", [0.0, 0.02, 0.1])
def test_a_place_passes_on_at_an_instant_of_its_query(work: float) -> None:
    async def story(places: Places) -> None:
        now = time.monotonic()
        first, second = places.enter(now), places.enter(now + 0.01)
        assert first.result() == now
        await asyncio.sleep(work)
        instant = places.leave(now)
        assert powers(now, instant) in POWERS
        assert not second.done()
        # Neither delays of the event loop nor the end of the work are observable.
        assert await second == instant
        assert time.monotonic() >= instant - 0.005

    run(story, 1, INTERVAL)


def test_who_waits_longest_begins_first_and_who_gave_up_is_passed_over() -> None:
    async def story(places: Places) -> None:
        now = time.monotonic()
        places.enter(now)
        gone, second, third = (places.enter(now) for _ in range(3))
        assert gone.cancel()
        instant = places.leave(now)
        assert await second == instant
        assert not second.cancel()
        assert not third.done()
        later = places.leave(instant)
        assert await third == later
        assert powers(instant, later) in POWERS

    run(story, 1, INTERVAL)


def test_an_idle_place_is_entered_at_once() -> None:
    async def story(places: Places) -> None:
        now = time.monotonic()
        assert [places.enter(now + i).result() for i in range(2)] == [now, now + 1]
        waiting = places.enter(now)
        assert not waiting.done()
        await asyncio.sleep(0)
        assert not waiting.done()
        places.leave(now)
        await waiting
        free = places.leave(now)
        # Not in the past: the loop would come back before it has looked at its timers.
        await asyncio.sleep(max(0.01, free + 0.01 - time.monotonic()))
        assert places.enter(now).done()

    run(story, 2, INTERVAL)


def test_without_a_clock_a_place_is_free_when_the_work_ends() -> None:
    async def story(places: Places) -> None:
        now = time.monotonic()
        places.enter(now)
        second = places.enter(now)
        await asyncio.sleep(0.01)
        instant = places.leave(now)
        assert second.result() == instant
        assert instant - now >= 0.01

    run(story, 1, 0.0)


def test_a_query_waits_for_memory_and_none_overtakes_it() -> None:
    async def story() -> None:
        places = Places(4, 0, memory=10)
        now = time.monotonic()
        first, second, third = (places.enter(now, bytes) for bytes in (7, 4, 1))
        assert first.done()
        assert not second.done()
        assert not third.done(), "it would fit, but came later"
        places.leave(now, 7)
        assert second.done()
        assert third.done()
        fourth, fifth = places.enter(now, 6), places.enter(now, 1)
        assert not fourth.done()
        fourth.cancel()
        places.leave(now, 1)
        assert fifth.done(), "a cancelled query holds nobody up"

    asyncio.run(story())
