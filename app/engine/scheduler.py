"""Drives the schedule of one process by its clock. Only its event loop may call this."""

import asyncio
import time

from app.engine.schedule import Schedule, Ticket


class Scheduler:
    """Tells every query when it begins."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        #: The instant for which the timer is set: the next one of the schedule. None if no query
        #: waits or runs.
        self._instant: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: The number of queries that have arrived and have neither begun nor been cancelled.
        self.waiting = 0

    def enter(self, ticket: Ticket, now: float) -> asyncio.Future[float]:
        """Returns a future of the monotonic time at which a query that arrives ``now`` begins.

        ``cancel`` ends the wait.
        """
        begun: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        ticket.begun = begun
        self.waiting += 1
        self._start(self._schedule.arrive(ticket, now))
        return begun

    def catch_up(self) -> None:
        """Begin what is due. Many requests at the same time keep the event loop from its timer."""
        if self._instant is not None and self._instant <= time.monotonic():
            self._advance()

    def cancel(self, ticket: Ticket) -> bool:
        """End the wait of a query. Returns False if it has begun by now."""
        assert ticket.begun is not None
        now = time.monotonic()
        self._advance(now)
        if not ticket.begun.cancel():
            return False
        ticket.start = None
        self.waiting -= 1
        self._start(self._schedule.uncover(now))
        return True

    def finish(self, ticket: Ticket, end: float) -> None:
        """The work is over. The slot of a heavy query is free from the instant ``end`` on."""
        if ticket.is_light:
            return
        self._schedule.finish(ticket, end)
        self._advance()

    def _start(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            assert ticket.begin is not None
            assert ticket.begun is not None
            # The query's begin is the public instant of the schedule, and not the later moment at
            # which the event loop runs this line.
            ticket.begun.set_result(ticket.begin)
            self.waiting -= 1
        try:
            for ticket in tickets:
                # Danger: a ticket that kept ``start`` would be in a cycle with its query, and keep
                # the records in memory until the next full garbage collection.
                start, ticket.start = ticket.start, None
                if start is not None:
                    start()
        finally:
            self._wait()

    def _wait(self) -> None:
        """Set the timer to the next instant of the schedule."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._instant = instant = self._schedule.next_instant()
        if instant is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, instant - time.monotonic()), self._advance)

    def _advance(self, now: float | None = None) -> None:
        self._start(self._schedule.advance(time.monotonic() if now is None else now))
