"""Begins and ends are a function of arrivals, analysts and public lengths, and they are fair."""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections.abc import Callable, Iterator

import pytest

from app.engine.deadlines import Clock
from app.engine.schedule import LIGHT, LIGHT_BURST, LONG, QUANTUM, Schedule, Ticket
from app.engine.scheduler import Scheduler

#: The load of a scheduler: (arrival, analyst, length) of each query, in order of arrival.
Load = list[tuple[float, int, float]]
#: The instants (begin, end) of each query of a load.
Instants = list[tuple[float, float]]

HEAVY = 1.0


def driven(
    load: Load,
    slots: int,
    polls: Iterator[float] = iter(()),
    work: Callable[[], float] = lambda: 0.0,
) -> Instants:
    """The begin and end that ``Schedule`` gives each query of a load.

    Args:
        polls: further instants at which ``advance`` is called, though nothing arrives or ends then.
        work: draws for each query the run time of its work, as a share of its length below 1.
    """
    schedule = Schedule(slots, processors=2)
    tickets = [Ticket(analyst, length, HEAVY) for _, analyst, length in load]
    pending = sorted([*polls, *(arrival for arrival, _, _ in load)])
    rest = iter(zip(load, tickets, strict=True))
    coming = next(rest, None)
    #: A heap of the instants at which running queries end, each with a tie-break and its query.
    ends: list[tuple[float, int, Ticket]] = []
    while pending or ends or schedule.next_instant() is not None:
        instants = [*pending[:1], *(instant for instant, _, _ in ends[:1])]
        ready = schedule.next_instant()
        now = min(instants if ready is None else [*instants, ready])
        while ends and ends[0][0] <= now:
            _, _, ticket = heapq.heappop(ends)
            assert ticket.begin is not None
            schedule.finish(ticket, ticket.begin + ticket.length)
        begun = schedule.advance(now)
        if pending and pending[0] == now:
            pending.pop(0)
        while coming is not None and coming[0][0] == now:
            begun += schedule.arrive(coming[1], now)
            coming = next(rest, None)
        for ticket in begun:
            assert ticket.begin is not None
            heapq.heappush(ends, (ticket.begin + work() * ticket.length, id(ticket), ticket))
    return [(t.begin, t.begin + t.length) for t in tickets if t.begin is not None]


def model(load: Load, slots: int) -> Instants:
    """What ``driven`` must return: a second, simpler and slower program of deficit round robin.

    It knows no end of work: each query occupies its slot for its whole length.
    """
    free = [0.0] * slots
    running: list[tuple[float, float]] = []
    queues: dict[int, list[int]] = {}
    deficit: dict[int, float] = {}
    turns: list[int] = []
    began = False
    begins: dict[int, float] = {}
    instants = sorted({arrival for arrival, _, _ in load})
    while instants:
        now = instants.pop(0)
        for i, (arrival, analyst, _) in enumerate(load):
            if arrival == now:
                if analyst not in queues:
                    queues[analyst], deficit[analyst] = [], 0.0
                    turns.append(analyst)
                queues[analyst].append(i)
                began = _begin(now, load, free, running, queues, deficit, turns, begins, began)
        began = _begin(now, load, free, running, queues, deficit, turns, begins, began)
        instants = sorted({*instants, *(end for end in free if end > now)})
    return [(begins[i], begins[i] + load[i][2]) for i in range(len(load))]


def _begin(
    now: float,
    load: Load,
    free: list[float],
    running: list[tuple[float, float]],
    queues: dict[int, list[int]],
    deficit: dict[int, float],
    turns: list[int],
    begins: dict[int, float],
    began: bool,
) -> bool:
    passed: set[int] = set()
    while turns and min(free) <= now and len(passed) < len(turns):
        analyst = turns[0]
        first = queues[analyst][0]
        length = load[first][2]
        if not began and deficit[analyst] < length:
            deficit[analyst] += QUANTUM
        began = True
        long = sum(end > now and size > LONG for end, size in running)
        blocked = length > LONG and long >= max(len(free) - 1, 1)
        if deficit[analyst] >= length and not blocked:
            free[free.index(min(free))] = now + length
            running.append((now + length, length))
            begins[first] = now
            queues[analyst].pop(0)
            deficit[analyst] -= length
            passed.clear()
            if not queues[analyst]:
                turns.pop(0)
                del queues[analyst], deficit[analyst]
                began = False
        else:
            if deficit[analyst] >= length:
                passed.add(analyst)
            turns.append(turns.pop(0))
            began = False
    return began


def random_load(rng: random.Random, most: float, queries: int = 12) -> Load:
    analysts = rng.randint(1, 5)
    arrivals = sorted(rng.choice((0.0, rng.uniform(0, 20))) for _ in range(queries))
    return [
        (arrival, rng.randrange(analysts), rng.choice((rng.uniform(0.025, most), most, 0.05)))
        for arrival in arrivals
    ]


@pytest.mark.parametrize("slots", [1, 3, 4])
def test_begins_are_those_of_the_model_whenever_work_ends_or_the_clock_is_read(slots: int) -> None:
    """A pure function of arrivals, analysts and lengths, for random work below the lengths."""
    for seed in range(150):
        rng = random.Random(seed)
        load = random_load(rng, rng.choice((3.0, 30.0)))
        polls = iter(rng.uniform(0, 40) for _ in range(5))
        expected = model(load, slots)
        assert driven(load, slots) == expected, seed
        assert driven(load, slots, polls, work=rng.random) == expected, seed


def test_no_analyst_waits_for_more_than_a_turn_of_the_others() -> None:
    """The head of each queue of ten thousand random loads begins within the bound of fairness."""
    slots = 3
    for seed in range(10_000):
        rng = random.Random(seed)
        load = random_load(rng, LONG, queries=8)
        longest = max(length for _, _, length in load)
        analysts = len({analyst for _, analyst, _ in load})
        head_since: dict[int, float] = {}
        for (arrival, analyst, length), (begin, _) in zip(load, driven(load, slots), strict=True):
            since = max(arrival, head_since.get(analyst, 0.0))
            bound = ((analysts - 1) * (length + QUANTUM + longest)) / slots + longest
            assert begin - since <= bound + 1e-9, seed
            head_since[analyst] = begin


def test_one_analyst_alone_uses_all_slots() -> None:
    assert [begin for begin, _ in driven([(0.0, 1, 2.0)] * 7, 3)] == [0, 0, 0, 2, 2, 2, 4]


def test_a_long_query_never_takes_the_last_slot_without_one() -> None:
    load = [(0.0, analyst, 2 * LONG) for analyst in range(3)] + [(1.0, 9, 1.0)]
    assert [begin for begin, _ in driven(load, 3)] == [0, 0, 2 * LONG, 1]


def test_bob_does_not_wait_for_all_queries_of_ana() -> None:
    load = [(0.0, 1, 1.0)] * 256 + [(0.5, 2, 1.0)]
    (begin, _) = driven(load, 3)[-1]
    assert begin - 0.5 <= 3.0


def test_light_queries_begin_at_once_up_to_their_share_and_are_shared_fairly() -> None:
    schedule = Schedule(1, processors=2)
    heavy = [Ticket(1, 5.0, HEAVY) for _ in range(9)]
    for ticket in heavy:
        schedule.arrive(ticket, 0.0)
    crowd = [Ticket(1, 0.025, LIGHT) for _ in range(400)]
    for ticket in crowd:
        schedule.arrive(ticket, 1.0)
    assert crowd[0].begin == 1.0
    bob = Ticket(2, 0.025, LIGHT)
    schedule.arrive(bob, 1.0)
    schedule.advance(1.05)
    assert bob.begin is not None
    assert sum(ticket.begin is None for ticket in crowd) > 300
    schedule.advance(4.0)
    last = crowd[-1].begin
    assert last is not None
    # All light queries together get a quarter of the two processors, which is half a processor.
    assert last == pytest.approx(1.0 + (400 * LIGHT - LIGHT_BURST) / 0.5, abs=0.02)


@pytest.mark.parametrize("processors", [1, 2, 4, 64])
@pytest.mark.parametrize("count", [50, 400])
def test_light_queries_at_once_are_all_in_time_on_one_event_loop(
    processors: float, count: int
) -> None:
    """Each takes its whole public cost, and those that begin together wait for one another."""
    clock = Clock(0.025)
    for seed in range(20):
        rng, schedule = random.Random(seed), Schedule(1, processors)
        most = rng.choice((LIGHT, LIGHT / 5, LIGHT / 50))
        costs = [rng.uniform(most / 2, most) for _ in range(count)]
        tickets = [Ticket(rng.randrange(3), clock.length(cost), cost) for cost in costs]
        begun = [one for ticket in tickets for one in schedule.arrive(ticket, 0.0)]
        begun += schedule.advance(10.0)
        assert len(begun) == count
        over = 0.0
        for ticket in begun:
            assert ticket.begin is not None
            over = max(over, ticket.begin) + ticket.cost
            assert over <= ticket.begin + ticket.length - clock.allowance, seed


def test_work_that_is_not_over_keeps_its_slot_until_the_doubled_deadline() -> None:
    schedule = Schedule(1, processors=2)
    first, second = Ticket(1, 2.0, HEAVY), Ticket(2, 1.0, HEAVY)
    schedule.arrive(first, 0.0)
    schedule.arrive(second, 0.0)
    schedule.advance(3.0)
    assert second.begin is None
    schedule.finish(first, 4.0)
    schedule.advance(10.0)
    assert second.begin == 4.0


def test_a_query_waits_for_memory_and_none_overtakes_it() -> None:
    schedule = Schedule(4, processors=2, memory=10)
    first, second, third = (Ticket(i, 1.0, HEAVY, size) for i, size in enumerate((7, 4, 1)))
    for ticket in (first, second, third):
        schedule.arrive(ticket, 0.0)
    assert (first.begin, second.begin, third.begin) == (0.0, None, None)
    schedule.finish(first, 1.0)
    schedule.advance(1.0)
    assert (second.begin, third.begin) == (1.0, 1.0)


def test_a_query_that_was_cancelled_holds_nobody_up() -> None:
    async def story() -> None:
        scheduler = Scheduler(Schedule(1, processors=2))
        now = time.monotonic()
        running = Ticket(1, 0.05, HEAVY)
        assert (await scheduler.enter(running, now)) == now
        gone, last = Ticket(1, 9.0, HEAVY), Ticket(1, 0.05, HEAVY)
        first, second = scheduler.enter(gone, now), scheduler.enter(last, now)
        assert scheduler.cancel(gone)
        assert first.cancelled()
        scheduler.finish(running, now + 0.05)
        # The next query begins at the deadline of the one before it. So neither delays of the event
        # loop nor the end of the work are observable.
        assert await second == now + 0.05
        assert not scheduler.cancel(last)

    asyncio.run(story())


def test_a_cancellation_lets_the_next_query_begin_and_no_earlier_than_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A light query behind a dearer one could have begun before the other was cancelled."""
    now = 100.0

    async def story() -> None:
        nonlocal now
        monkeypatch.setattr(time, "monotonic", lambda: now)
        scheduler = Scheduler(Schedule(2, processors=2))
        for _ in range(5):
            scheduler.enter(Ticket(1, 0.025, LIGHT_BURST / 5), now)
        dear, cheap = Ticket(1, 0.025, LIGHT), Ticket(1, 0.025, LIGHT / 40)
        scheduler.enter(dear, now)
        now += 0.0036
        scheduler.enter(cheap, now)
        now += 0.0002
        assert (dear.begin, cheap.begin) == (None, None)
        assert scheduler.cancel(dear)
        assert cheap.begin == now

    asyncio.run(story())


def test_nothing_begins_before_it_arrives_whenever_heads_are_cancelled() -> None:
    class Wait:
        over = False

        def cancelled(self) -> bool:
            return self.over

    for seed in range(50):
        rng, schedule, now = random.Random(seed), Schedule(1, processors=1), 100.0
        waiting: list[tuple[float, Ticket]] = []
        for _ in range(150):
            now += rng.choice((0.0, rng.uniform(0, 0.005)))
            ticket = Ticket(rng.randrange(2), 0.025, rng.choice((LIGHT, LIGHT, LIGHT / 40)))
            ticket.begun = Wait()  # type: ignore[assignment]
            schedule.arrive(ticket, now)
            waiting.append((now, ticket))
            for _, other in waiting:
                if other.begin is None and rng.random() < 0.05:
                    other.begun.over = True  # type: ignore[union-attr]
        schedule.advance(now + 60)
        for arrival, ticket in waiting:
            assert ticket.begin is None or ticket.begin >= arrival, seed


def test_without_deadlines_a_slot_is_free_when_the_work_ends() -> None:
    schedule = Schedule(1, processors=float("inf"))
    first, second = Ticket(1, 0.0, HEAVY), Ticket(1, 0.0, HEAVY)
    schedule.arrive(first, 1.0)
    schedule.arrive(second, 1.0)
    assert schedule.next_instant() is None
    schedule.finish(first, 7.0)
    schedule.advance(7.0)
    assert second.begin == 7.0
