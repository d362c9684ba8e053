"""Deadlines: the public instants at which answers leave.

The run time of work on open arrays may depend on records. So a query of public cost C counts as
running until L seconds after its begin, with L = margin · C + start + stall + allowance, rounded up
to the tick. The work may start so much later, and be stopped for so long, because other work runs.
Where it starts later, L grows by ticks before anything is known of the work. The answer waits in
memory and is stored one allowance before its deadline. So neither the journal nor other queries
show when the work ended. Work that is not over by then misses the deadline, which moves to L · 2^j
after the begin.
"""

import math
from dataclasses import dataclass

#: An answer is stored this many seconds before its deadline, or this share of a tick before it,
#: whichever is longer. A tick is the distance between two instants at which answers may leave. So
#: an answer has been stored when it must leave.
ALLOWANCE, ALLOWANCE_SHARE = 0.010, 0.25
#: A deadline allows for this many times the public cost, because other work slows a query down.
MARGIN = 2.0
#: Work is expected to start within this many seconds after its query begins, or within this share
#: of a tick if that is longer. The seconds are twice the public cost of the light queries that may
#: begin together with it.
START, START_SHARE = 0.010, 0.4
#: Work may wait this many seconds, in all, for a processor or for the interpreter lock. With one
#: millisecond more, no query would fit into one tick of 25 ms.
STALL = 0.004
#: A missed deadline moves to twice its distance from the beginning of the query, at most this many
#: times. Then the attempt ends without an answer.
MOST_MISSES = 6


@dataclass(frozen=True)
class Clock:
    """Deadlines are multiples of ``tick`` seconds after a begin; 0 disables them, for tests."""

    tick: float

    @property
    def allowance(self) -> float:
        """Seconds before its deadline at which an answer is stored."""
        return max(ALLOWANCE, ALLOWANCE_SHARE * self.tick)

    @property
    def start(self) -> float:
        """Seconds after the begin of a query within which its work is expected to start."""
        return max(START, START_SHARE * self.tick)

    def length(self, seconds: float) -> float:
        """L, in seconds, of a query of this public cost."""
        if not self.tick:
            return 0.0
        least = self.start + MARGIN * seconds + STALL + self.allowance
        return math.ceil(least / self.tick) * self.tick

    def moved(self, length: float, late: float) -> float:
        """L of a query of length L whose work began ``late`` seconds after its begin.

        Where work starts later than ``start``, the machine is slow at this moment, and the work
        takes longer too. So the deadline moves by whole ticks, and the work has all of its time.
        The ticks depend on the load, which includes other queries, and never on this work.
        """
        return length + max(0, math.ceil((late - self.start) / self.tick)) * self.tick

    def next_tick(self, length: float, elapsed: float) -> float:
        """The first of L, L + tick, … that is not before ``elapsed``, all since the begin."""
        if not self.tick or elapsed <= length:
            return max(length, elapsed)
        return length + math.ceil((elapsed - length) / self.tick) * self.tick
