"""When queries begin: a virtual machine that runs each of them for exactly its public length.

The moment at which a query begins is visible, because from then on it cannot be cancelled. So it is
a function of public facts: who asked when, and how long each query may take. A slot whose work ends
early stays idle until the deadline, because to pass it on would show the end.

Here are no clocks and no threads: ``app.engine.scheduler`` drives a schedule.
"""

from __future__ import annotations

import heapq
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from app.engine.fair_queue import FairQueue

#: The public cost in seconds up to which a query is light and needs no slot.
LIGHT = 0.002
#: The seconds that an analyst gets in each turn of a fair queue (deficit round robin): for heavy
#: queries and for light ones. A heavy query uses up the seconds from its beginning to its deadline,
#: a light one its public cost, because it occupies no slot until then.
QUANTUM, LIGHT_QUANTUM = 1.0, 0.01
#: Queries whose deadline is more than this many seconds after their beginning may occupy all slots
#: except one. Shorter queries then need not wait for them. A single slot serves both kinds.
LONG = 10.0
#: Light queries may take this share of all processors, and one processor at most: the event loop
#: runs them one after another.
LIGHT_SHARE, LIGHT_MOST = 0.25, 1.0
#: The most seconds of unused time that light queries may save up. Saved time lets several queries
#: begin together and delay one another, so a larger value would make them miss deadlines.
LIGHT_BURST = 0.005


@dataclass(eq=False)
class Ticket:
    """One query. ``length``: L in seconds; ``cost``: C in seconds; ``bytes``: public memory."""

    analyst: int
    length: float
    cost: float
    bytes: int = 0
    #: The instants in seconds at which the query begins and ends; None while unknown. If the work
    #: takes longer, the end moves to a later instant.
    begin: float | None = None
    end: float | None = None
    is_over: bool = False
    #: A future that receives the instant at which the query begins. Cancelling it takes the query
    #: out of its queue.
    begun: Future[float] | None = None
    #: Starts the work. The scheduler calls it when the query begins, before anything else runs on
    #: the event loop: what runs in between would take of the time until the deadline.
    start: Callable[[], None] | None = None

    @property
    def is_cancelled(self) -> bool:
        return self.begun is not None and self.begun.cancelled()

    @property
    def is_light(self) -> bool:
        return self.cost <= LIGHT

    @property
    def amount(self) -> float:
        return self.cost if self.is_light else self.length


@dataclass
class Bucket:
    """A token bucket: the public cost in seconds of the light queries that may begin now.

    It fills by ``rate`` seconds per second, up to ``LIGHT_BURST``, and each query takes its cost.
    ``level`` is what it held at the instant ``at``.
    """

    rate: float
    level: float = LIGHT_BURST
    at: float = 0.0

    def ready(self, cost: float) -> float:
        """The instant from which ``cost`` may be taken, or a full bucket if that is less."""
        return self.at + max(min(cost, LIGHT_BURST) - self.level, 0.0) / self.rate

    def take(self, cost: float, now: float) -> None:
        if now > self.at:
            self.level = min(self.level + (now - self.at) * self.rate, LIGHT_BURST)
            self.at = now
        self.level -= cost


@dataclass
class Schedule:
    """The slots of one process, and the queries that wait for them.

    ``arrive``, ``uncover`` and ``advance`` return the tickets that begin by ``now``, in the order
    of their ``begin``, which is set.
    """

    slots: int
    processors: float
    memory: int = 1 << 62
    _heavy: FairQueue[Ticket] = field(default_factory=lambda: FairQueue(QUANTUM))
    _light: FairQueue[Ticket] = field(default_factory=lambda: FairQueue(LIGHT_QUANTUM))
    _ends: list[tuple[float, int, Ticket]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _busy: int = 0
    _long: int = 0
    #: The latest instant that the schedule has reached. It never goes back, so no query begins
    #: before its arrival.
    _now: float = float("-inf")

    def __post_init__(self) -> None:
        share = LIGHT_SHARE * self.processors
        # Infinitely many processors mean no limit on light queries. Tests, benchmarks and services
        # without deadlines set this, because no deadline can be missed there.
        self._bucket = Bucket(share if share == float("inf") else min(share, LIGHT_MOST))

    def arrive(self, ticket: Ticket, now: float) -> list[Ticket]:
        """Add a query that is charged. Queries that may begin before ``now`` begin first."""
        begun = self.advance(now)
        (self._light if ticket.is_light else self._heavy).add(ticket)
        return begun + self._begin(self._now)

    def uncover(self, now: float) -> list[Ticket]:
        """After the cancellation of a waiting query: those behind it may begin from ``now`` on."""
        self._now = max(self._now, now)
        return self._begin(self._now)

    def advance(self, now: float) -> list[Ticket]:
        """Let time pass until ``now``: free slots at their instants, and begin queries in them."""
        begun = []
        while (instant := self.next_instant()) is not None and instant <= now:
            self._now = instant
            self._free(instant)
            begun += self._begin(instant)
        self._now = max(self._now, now)
        return begun

    def next_instant(self) -> float | None:
        """The next instant at which a query may begin or a slot may be freed; None without one."""
        instants = [self._ends[0][0]] if self._ends else []
        head = self._light.head()
        if head is not None:
            instants.append(self._bucket.ready(head.cost))
        return max(min(instants), self._now) if instants else None

    def finish(self, ticket: Ticket, end: float) -> None:
        """The work of a query is over. Its slot is freed at ``end``, the deadline that it met."""
        ticket.is_over, ticket.end = True, end
        heapq.heappush(self._ends, (end, next(self._numbers), ticket))

    def _free(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            at, _, ticket = heapq.heappop(self._ends)
            if ticket.end != at:
                # This heap entry is out of date: the query's end has moved, or the query has ended.
                continue
            if ticket.is_over:
                ticket.end = None
                self._busy -= 1
                self._long -= ticket.length > LONG
                self.memory += ticket.bytes
            else:
                assert ticket.begin is not None
                self._ends_at(ticket, ticket.begin + 2 * (at - ticket.begin))

    def _ends_at(self, ticket: Ticket, end: float) -> None:
        ticket.end = end
        heapq.heappush(self._ends, (end, next(self._numbers), ticket))

    def _begin(self, now: float) -> list[Ticket]:
        begun = []
        while (light := self._light.head()) and self._bucket.ready(light.cost) <= now:
            self._light.take()
            self._bucket.take(light.cost, now)
            light.begin = now
            begun.append(light)
        passed: set[int] = set()
        while self._busy < self.slots and (ticket := self._heavy.head()):
            if ticket.bytes > self.memory:
                # The first heavy query waits until enough memory is free. If smaller queries could
                # overtake it, they could delay it without end.
                break
            is_long = ticket.length > LONG
            if is_long and self._long >= max(self.slots - 1, 1):
                self._heavy.skip()
                passed.add(ticket.analyst)
                if len(passed) == self._heavy.analysts():
                    break
                continue
            passed.clear()
            self._heavy.take()
            self._busy += 1
            self._long += is_long
            self.memory -= ticket.bytes
            ticket.begin = now
            if ticket.length:
                self._ends_at(ticket, now + ticket.length)
            begun.append(ticket)
        return begun
