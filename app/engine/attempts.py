"""Attempts at charged queries, from the charge to the deadline.

    begin → start → compute ── the time to store comes ── settle → the deadline comes → leave

The end of the work may depend on records. So the slot is freed, the answer is stored and the reply
leaves at public instants, whenever the work ends before them. Work that misses its deadline waits
for a later one. After the last one the attempt ends without an answer, and the charge stands.
"""

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from app.contract.problems import query_failed_body
from app.engine.deadlines import MOST_MISSES, Clock
from app.engine.execution import Execution
from app.engine.reply import Reply, replayed
from app.engine.requests import Priced, QueryRequest
from app.engine.schedule import LIGHT, Ticket
from app.engine.scheduler import Scheduler
from app.engine.waiting import over, read_exception, until
from app.queries import QueryContext
from mechanisms.model.executor import ExecutorFailed
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from storage.errors import CommitUnknown, QueryReleased, StillRunning, StorageError
from storage.ledger.ledger import Ledger, Reservation
from storage.queries.history import Queries

log = structlog.get_logger("privypurse.attempts")

#: The public cost in seconds up to which work runs on the event loop. A thread would have to wait
#: for the interpreter lock, longer than most such work takes, and so short a pause of the loop
#: delays no deadline.
INLINE = LIGHT
#: Failures of the machine and not of the work, such as a full disk, no memory or a lost cluster.
#: The query then stays charged and without an answer; the failure never becomes its answer.
OUTSIDE = (OSError, MemoryError, StorageError, ExecutorFailed)


@dataclass
class Attempt:
    """One attempt of this process at a query, between its reservation and its deadline.

    No record is read before ``ticket.begun`` has its result, the begin of the query.
    """

    reservation: Reservation
    records: Records
    ticket: Ticket
    started: float
    #: The task that answers the query. It ends at the deadline, with the reply or an error.
    task: asyncio.Task[Reply | Exception]
    #: Seconds from the beginning of the query to its deadline. If the work starts late, the
    #: deadline moves by ticks (the distances between two instants at which answers may leave). Each
    #: missed deadline doubles the length.
    length: float
    #: The monotonic time until which the caller waits. If the deadline comes later, the reply 202
    #: must leave at this time. Work on the event loop would delay it, so the work runs in a thread.
    awaited_until: float
    #: The work, which exists once the query has begun, and the monotonic times at which it started
    #: and ended. The thread of the work notes these times itself, because the event loop may learn
    #: of them much later.
    job: asyncio.Future[tuple[int, bytes]] | None = None
    work_started: float | None = None
    work_ended: float | None = None

    @property
    def begin(self) -> float:
        """The monotonic time at which the query began."""
        assert self.ticket.begin is not None, "the query has begun"
        return self.ticket.begin

    @property
    def is_first(self) -> bool:
        """Only a first attempt can be cancelled: an earlier one may have read records."""
        return self.reservation.attempt == 1


class Attempts:
    """Does the work of charged queries, and stores each answer in time for its deadline."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        queries: Queries,
        execution: Execution,
        randomness: Randomness,
        clock: Clock,
        lease: float,
        scheduler: Scheduler,
    ) -> None:
        self._ledger, self._queries = ledger, queries
        self._execution, self._randomness = execution, randomness
        self._clock, self._lease, self._scheduler = clock, lease, scheduler
        #: The numbers of missed deadlines, and of queries whose reply left after their first
        #: deadline for any reason. They may depend on records, so only the operator sees them, in
        #: the metrics.
        self.misses = 0
        self.late = 0
        self._keeper: asyncio.Task[None] | None = None
        self._under_way: dict[UUID, Attempt] = {}
        #: The kinds of work that this process has run at least once. Without deadlines, the first
        #: query of a kind loads its kernels. It runs in a thread, because loading would block the
        #: event loop.
        self._warm: set[str] = set()

    def find(self, query_id: UUID) -> Attempt | None:
        """The attempt of this process at a query, until its deadline; None if there is none."""
        return self._under_way.get(query_id)

    def enter(self, attempt: Attempt, request: QueryRequest, priced: Priced) -> None:
        """Queue a query that is charged. The scheduler begins it, now or later."""
        attempt.ticket.start = partial(self._start, attempt, request, priced)
        self._scheduler.enter(attempt.ticket, attempt.started)
        self._under_way[attempt.reservation.query_id] = attempt
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_all())

    async def finish(self, attempt: Attempt) -> Reply:
        """Wait for the work, settle, and return the reply at its deadline.

        Raises, also at a deadline: QueryReleased if the query was cancelled; StillRunning or
            CommitUnknown if it has no answer for a reason outside of its work, or another attempt
            holds it.
        """
        id = attempt.reservation.query_id
        settled: bool | Exception
        try:
            await self._begin(attempt)
            reply = await self._outcome(attempt)
            settled = reply if isinstance(reply, Exception) else False
            if not isinstance(reply, Exception):
                settled = await self._settle(attempt, reply)
            # An answer that was stored after its deadline leaves at the next tick, one of the
            # public instants at equal distances. So the time of its storing stays hidden.
            elapsed = time.monotonic() - attempt.begin
            length = self._clock.next_tick(attempt.length, elapsed)
            self.late += bool(self._clock.tick) and length > attempt.ticket.length
            await until(attempt.begin + length)
            if isinstance(settled, Exception):
                raise settled
            assert not isinstance(reply, Exception)
            if not settled:
                # Another attempt holds the query or has stored its answer, which is the only one
                # that may leave. So the result of this attempt is dropped.
                return replayed(id, *await asyncio.to_thread(self._queries.reply, id))
            return Reply(id, *reply)
        finally:
            # Removes the query from the table of queries under way. A newer attempt of this process
            # at the same query may be in its row by now, and must stay.
            if self._under_way.get(id) is attempt:
                del self._under_way[id]

    async def _begin(self, attempt: Attempt) -> None:
        """Wait until the query begins.

        Raises: QueryReleased when it was cancelled and its charge is released; StillRunning when
            it was cancelled and the charge may stand, so that the same key runs it later.
        """
        begun = attempt.ticket.begun
        assert begun is not None, "the query has entered the schedule"
        if not begun.done():
            await asyncio.wait([begun])
        if not begun.cancelled():
            return
        reservation = attempt.reservation
        try:
            released = await self._ledger.release(reservation)
        except StorageError:
            released = False
        if released:
            raise QueryReleased(reservation.query_id)
        raise StillRunning(reservation.query_id)

    def _start(self, attempt: Attempt, request: QueryRequest, priced: Priced) -> None:
        """Begin the work: of a light query mostly on the event loop, of any other in a thread."""
        ticket, kinds = attempt.ticket, priced.cost.work.keys()
        is_awaited = attempt.begin + attempt.length <= attempt.awaited_until
        is_loaded = self._clock.tick > 0 or kinds <= self._warm
        is_inline = is_awaited and ticket.cost <= INLINE and is_loaded
        run = self._execution.inline if is_inline else self._execution.job
        try:
            attempt.job = run(self._compute, attempt, request, priced)
        except Exception as error:
            # The error is stored in the future and not raised here, because the scheduler must
            # still start other queries after this one.
            attempt.work_started = attempt.work_ended = time.monotonic()
            attempt.job = asyncio.get_running_loop().create_future()
            attempt.job.set_exception(error.with_traceback(None))
        if is_loaded:
            return

        def warm(job: asyncio.Future[tuple[int, bytes]]) -> None:
            if not job.cancelled() and job.exception() is None:
                self._warm.update(kinds)

        # Once this work has ended, its kernels are compiled and loaded. So light queries of these
        # kinds may then run on the event loop.
        attempt.job.add_done_callback(warm)

    def _compute(
        self, attempt: Attempt, request: QueryRequest, priced: Priced
    ) -> tuple[int, bytes]:
        """Status and body of the reply. Raises: ``OUTSIDE``, for a failure that is not the work's.

        It opens no file and starts no thread.
        """
        attempt.work_started = time.monotonic()
        reservation = attempt.reservation
        dataset, kernels = priced.dataset, self._execution.queries
        try:
            context = QueryContext(
                attempt.records, dataset, request.loss, self._randomness, kernels
            )
            release = priced.compute(context, reservation.charged_rho)
            return 201, priced.reply(reservation, release.answer)
        except OUTSIDE:
            raise
        except Exception:
            # The error of a computation may depend on records. So the reply is one fixed text, and
            # nothing is logged.
            return 500, query_failed_body(reservation.query_id)
        finally:
            attempt.work_ended = time.monotonic()

    async def _outcome(self, attempt: Attempt) -> tuple[int, bytes] | Exception:
        """Waits until the answer is to be stored. Returns status and body, or an error instead."""
        id, ticket, job = attempt.reservation.query_id, attempt.ticket, attempt.job
        assert job is not None, "the scheduler starts the work when it begins the query"
        if not await self._in_time(job, attempt):
            # The work has missed its last deadline, but running compiled code cannot be stopped.
            # Its result is dropped. The query keeps its slot until the next of the public instants
            # at which the schedule doubles its length: to free the slot at once would show when the
            # work ended.
            job.add_done_callback(read_exception)
            job.add_done_callback(
                lambda _: self._scheduler.finish(ticket, ticket.end or time.monotonic())
            )
            return StillRunning(id)
        # A busy event loop may come here after the deadline. Then the slot is freed at the next
        # tick, and never at the end of the work, which may depend on records.
        elapsed = time.monotonic() - attempt.begin
        end = attempt.begin + self._clock.next_tick(attempt.length, elapsed)
        self._scheduler.finish(ticket, end)
        try:
            return job.result()
        except OUTSIDE as error:
            log.error("a query ended without an answer", error=type(error).__qualname__)
            # The traceback refers to this attempt, which refers to its job and so to the error. The
            # records would stay in memory until a garbage collection.
            error.__traceback__ = None
            return StillRunning(id)

    async def _in_time(self, job: asyncio.Future[Any], attempt: Attempt) -> bool:
        """Wait until the work is to be stored. Returns False if it misses its last deadline.

        Only work that ends too late misses a deadline. If the event loop sees its end too late, its
        answer leaves one tick later, like any that is stored late.
        """
        if not self._clock.tick:
            if not job.done():
                await asyncio.wait([job])
            return True
        await self._has_started(job, attempt)
        first = attempt.length
        for misses in range(MOST_MISSES + 1):
            attempt.length = first * 2.0**misses
            instant = await self._to_store(job, attempt)
            if attempt.work_ended is not None and attempt.work_ended <= instant:
                await asyncio.wait([job])
                await until(instant)
                return True
            self.misses += 1
            log.error("a query has missed its deadline")
        return False

    async def _has_started(self, job: asyncio.Future[Any], attempt: Attempt) -> None:
        """Wait until the work has started, and move the deadline if it started too late."""
        ticket = attempt.ticket
        while True:
            started = attempt.work_started or time.monotonic()
            moved = self._clock.moved(ticket.length, started - attempt.begin)
            attempt.length = max(attempt.length, moved)
            if attempt.work_started is not None or job.done():
                return
            await self._to_store(job, attempt)

    async def _to_store(self, job: asyncio.Future[Any], attempt: Attempt) -> float:
        """Wait until the work ends or is to be stored; returns the monotonic time of the latter."""
        instant = attempt.begin + attempt.length - self._clock.allowance
        await over(job, max(0.0, instant - time.monotonic()))
        return instant

    async def _settle(self, attempt: Attempt, reply: tuple[int, bytes]) -> bool | Exception:
        """Store the reply. Returns False if another attempt did, or the error to raise later.

        A failure must also leave at the deadline, so that it does not reveal the run time.
        """
        (status, body), reservation = reply, attempt.reservation
        elapsed = self._clock.next_tick(attempt.length, time.monotonic() - attempt.begin)
        after = attempt.begin - attempt.started + elapsed
        release_us = reservation.reserved_us + round(after * 1e6)
        try:
            return await self._ledger.settle(
                reservation, status=status, body=body, release_us=release_us
            )
        except CommitUnknown as error:
            return error
        except Exception as error:
            # The charge stands, and a retry with the same key gets an answer later. So the reply
            # says that the query is still running.
            log.error("an answer cannot be stored", error=type(error).__qualname__)
            return StillRunning(reservation.query_id)

    async def _keep_all(self) -> None:
        """Renew all leases three times per lease, so no other process runs these queries."""
        while True:
            await asyncio.sleep(self._lease / 3)
            reservations = [attempt.reservation for attempt in self._under_way.values()]
            # A failed renewal is repeated at the next round, whatever its error: without renewals
            # other processes would run these queries too. If a lease is lost meanwhile, the
            # settlement detects it and stores nothing.
            try:
                if reservations:
                    await self._ledger.renew(*reservations)
            except Exception as error:
                log.error("leases cannot be renewed", error=type(error).__qualname__)

    def close(self) -> None:
        """Stop the renewal of leases, after the last query."""
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
