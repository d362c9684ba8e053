"""The path of a query: the file to read first.

    look up → replay → price → refuse → open here? → reserve ── begins ── compute → settle → reply

Steps before "reserve" read public facts only, and a refusal there is free of charge. The service
has opened and checked the arrays before, so nothing of a query can fail between its charge and its
work for want of a file. From the begin on, every outcome costs the full price: the answer, or one
fixed error if the work itself fails. Both leave at a public deadline. A failure outside of the
work, such as a lost database, leaves the query charged and without an answer: the same key runs it
again under the same charge. A query can be cancelled until it begins, which also happens at a
public instant. If the client disconnects, the work continues and its answer is stored under the
idempotency key.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from starlette.concurrency import run_in_threadpool

from app.contract.errors import WarmingUp
from app.contract.ids import uuid7
from app.contract.problems import query_failed_body
from app.engine.admission import InFlight, Limits
from app.engine.deadlines import MOST_MISSES, Clock
from app.engine.execution import Execution, inline_if_embedded
from app.engine.requests import FORM, PATH, Priced, QueryRequest, written
from app.engine.schedule import LIGHT, Ticket
from app.engine.scheduler import Scheduler
from app.engine.waiting import over, read_exception, until
from app.queries import Query, QueryContext
from app.queries.parts.cost import Cost, Speeds
from mechanisms.model.executor import ExecutorFailed
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from storage.catalogue.datasets import Datasets
from storage.database.database import Database
from storage.errors import (
    CommitUnknown,
    NoRecords,
    NotOpen,
    QueryReleased,
    StillRunning,
    StorageError,
    TooLate,
)
from storage.files.labels import DistantLabels
from storage.ledger.ledger import Ledger, Replay, Reservation, Reserve
from storage.people.users import User
from storage.queries.history import Queries, QueryRow
from storage.queries.lookup import QueryLookup

log = structlog.get_logger("privypurse.answering")

#: Seconds between two reads of the row of a query that runs in another process.
POLL = 0.1
#: The public cost in seconds up to which work runs on the event loop. A thread would have to wait
#: for the interpreter lock, longer than most such work takes, and so short a pause of the loop
#: delays no deadline.
INLINE = LIGHT
#: Failures of the machine and not of the work, such as a full disk, no memory or a lost cluster.
#: The query then stays charged and without an answer; the failure never becomes its answer.
OUTSIDE = (OSError, MemoryError, StorageError, ExecutorFailed)


@dataclass(frozen=True)
class Reply:
    """A reply to the client. The bytes of a stored answer are sent unchanged."""

    query_id: UUID
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class UnderWay:
    """A query of this process between its reservation and its deadline.

    No record is read before ``ticket.begun`` has its result, the begin of the query.
    """

    reservation: Reservation
    records: Records
    ticket: Ticket
    started: float
    #: Ends with the reply, at the deadline.
    task: asyncio.Task[Reply]
    #: Seconds from the beginning of the query to its deadline. Each missed deadline doubles it.
    length: float
    #: The monotonic time until which the caller waits. If the deadline comes later, the reply 202
    #: leaves before it, and work on the event loop would delay that reply by its run time.
    awaited_until: float
    #: The work, from the begin on, and the monotonic times at which it started and ended. The
    #: thread that does it notes them itself, because the event loop may come to it much later.
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


class Answering:
    """Answers queries, and keeps track of the queries that run in this process."""

    def __init__(
        self,
        *,
        database: Database,
        ledger: Ledger,
        datasets: Datasets,
        queries: Queries,
        execution: Execution,
        randomness: Randomness,
        clock: Clock,
        speeds: Callable[[], Speeds | None],
        lease: float,
        in_flight: InFlight,
        scheduler: Scheduler,
        limits: Limits,
        warm_up: Callable[[], Awaitable[bool]],
    ) -> None:
        self._ledger, self._datasets, self._queries = ledger, datasets, queries
        self._lookup = QueryLookup(database, datasets, ledger)
        self._execution, self._randomness = execution, randomness
        self._clock, self._speeds = clock, speeds
        self._lease, self._database = lease, database
        self._in_flight, self._scheduler, self._limits = in_flight, scheduler, limits
        self._warm_up = warm_up
        #: The number of missed deadlines, and of queries that left later than they were to for any
        #: reason. They may depend on records, so only the operator sees them, in the metrics.
        self.misses = 0
        self.late = 0
        self._keeper: asyncio.Task[None] | None = None
        #: The queries that are being charged or under way.
        self._running: set[asyncio.Task[Reply]] = set()
        self._under_way: dict[UUID, UnderWay] = {}
        #: The running downloads of node lists from the store of records. Callers that need the same
        #: list wait for one download.
        self._fetching: dict[DistantLabels, asyncio.Task[object]] = {}
        #: The kinds of work that this process has run at least once. Without deadlines no kernel is
        #: loaded before its first query, which must not block the event loop meanwhile.
        self._warm: set[str] = set()

    async def answer(
        self,
        request: QueryRequest,
        analyst: User,
        key: str | None,
        wait: float,
        admit: Callable[[], None] = lambda: None,
    ) -> Reply:
        """Answer one query, or replay its stored answer; ``wait`` is in seconds.

        ``admit`` refuses by raising. It is called after the accounts, before in-flight limits.
        Raises: the errors of ``app.contract.problems``, before any record is read, free of charge.
        """
        # Many requests at the same time keep the event loop from its timer.
        self._scheduler.catch_up()
        body_hash = request.body_hash
        looked_up = await inline_if_embedded(
            self._database,
            self._lookup.look_up,
            *(request.dataset, analyst, key, body_hash),
            equals=request.equals,
        )
        if isinstance(looked_up, Replay):
            return self._replayed(looked_up)
        if looked_up.public is None:
            # The owner has not uploaded the graph's node list yet, so the query has no price.
            raise NoRecords(looked_up.name)
        priced = request.priced(looked_up.public, looked_up.counts_rho)
        seconds = self._seconds(priced.query, priced.cost)
        if not looked_up.version:
            raise NoRecords(looked_up.name)

        refusal = looked_up.refusal(priced.charge)
        if refusal is not None:
            raise refusal
        admit()
        self._in_flight.enter(analyst.id)
        task: asyncio.Task[Reply] | None = None
        try:
            if (
                looked_up.names is not None
                and not looked_up.names.at_hand
                and request.query.names_nodes()
            ):
                await self._fetch(looked_up.names)
            if not await self._warm_up():
                raise WarmingUp
            records = self._datasets.opened.get(looked_up.id, looked_up.version)
            if records is None:
                raise NotOpen("the records of this dataset are not open here now")
            reserve = Reserve(
                query_id=uuid7(),
                analyst_id=analyst.id,
                dataset_id=looked_up.id,
                key=key,
                body_hash=body_hash,
                charge=priced.charge,
                request=request.canonical,
                version=looked_up.version,
                form=FORM,
                limited_key=analyst.scope.limited_key,
                equals=request.equals,
            )
            ticket = Ticket(analyst.id, self._clock.length(seconds), seconds, priced.cost.bytes)
            charged: asyncio.Future[UnderWay] = asyncio.get_running_loop().create_future()
            awaited_until = time.monotonic() + wait
            run = self._run(reserve, request, priced, records, ticket, charged, awaited_until)
            task = asyncio.create_task(run)
        finally:
            if task is None:
                self._in_flight.leave(analyst.id)
        # If the caller is cancelled, the ledger may charge the query all the same. So its work
        # begins then too, and its answer is stored under its key.
        self._running.add(task)
        task.add_done_callback(self._ended)
        # The task ends at a deadline, never at the end of the work. So a reply of 202 reveals no
        # more about a run time than the deadlines do.
        if not await over(task, wait):
            await asyncio.wait((task, charged), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else self._accepted(charged.result(), request)

    async def _run(
        self,
        reserve: Reserve,
        request: QueryRequest,
        priced: Priced,
        records: Records,
        ticket: Ticket,
        charged: asyncio.Future[UnderWay],
        awaited_until: float,
    ) -> Reply:
        """Charge a query, do its work, and return its reply, or the one stored under its key.

        Danger: must run in a task that is not cancelled, so that every charge is followed by work.
        Both are one task: work that begins in the same iteration of the event loop as the charge
        becomes known can join the next commit.
        """
        try:
            outcome = await self._ledger.reserve(reserve)
            if isinstance(outcome, Replay):
                return self._replayed(outcome)
            if outcome.charged_rho is not None:
                # A retry computes with the price of the first attempt. The account may have begun
                # or ceased to count in ρ since then, which changes the defaults of the query.
                priced = request.priced_at(priced.dataset, outcome.charged_rho)
            now, task = time.monotonic(), asyncio.current_task()
            assert task is not None, "this coroutine runs in a task"
            under_way = UnderWay(outcome, records, ticket, now, task, ticket.length, awaited_until)
            ticket.start = partial(self._start, under_way, request, priced)
            begun = self._scheduler.enter(ticket, now)
            self._under_way[outcome.query_id] = under_way
            if self._keeper is None:
                self._keeper = asyncio.create_task(self._keep_all())
            charged.set_result(under_way)
            return await self._finish(under_way, begun)
        finally:
            self._in_flight.leave(reserve.analyst_id)

    def _ended(self, task: asyncio.Task[Reply]) -> None:
        self._running.discard(task)
        read_exception(task)

    def deadline(self, query: Query, cost: Cost) -> float:
        """The seconds from the begin of a query to its deadline; public, and so free.

        Raises: TooCostly; WarmingUp before the speeds of this machine are measured.
        """
        return round(self._clock.length(self._seconds(query, cost)), 6)

    def _seconds(self, query: Query, cost: Cost) -> float:
        speeds = self._speeds()
        if speeds is None:
            raise WarmingUp
        seconds = cost.seconds(speeds)
        self._limits.check(query, cost, seconds)
        return seconds

    async def _fetch(self, names: DistantLabels) -> None:
        """Download a node list before anything is charged; concurrent callers share one thread.

        The list is public, so the time that this takes is public too. Raises: StoreFailed.
        """
        task = self._fetching.get(names)
        if task is None:
            task = self._fetching[names] = asyncio.create_task(run_in_threadpool(names.here))
            task.add_done_callback(lambda _: self._fetching.pop(names))
            task.add_done_callback(read_exception)
        await asyncio.shield(task)

    def as_seen(self, row: QueryRow) -> QueryRow:
        """The row as it may be shown: a settled query counts as running until its deadline."""
        return row.as_running() if row.id in self._under_way and row.is_settled else row

    def _replayed(self, replay: Replay) -> Reply:
        if replay.query_id in self._under_way:
            raise StillRunning(replay.query_id)
        return replayed(replay.query_id, replay.status, replay.body)

    async def cancel(self, query_id: UUID) -> None:
        """Release the charge of a query that has not begun. Raises: TooLate if it has begun."""
        under_way = self._under_way.get(query_id)
        if under_way is None or not under_way.is_first:
            raise TooLate(query_id)
        if not self._scheduler.cancel(under_way.ticket):
            raise TooLate(query_id)
        try:
            await asyncio.shield(under_way.task)
        except QueryReleased:
            return
        raise TooLate(query_id)

    async def wait_for(self, query_id: UUID, wait: float) -> None:
        """Return at the query's deadline, or after ``wait`` seconds if that comes first."""
        under_way = self._under_way.get(query_id)
        if under_way is not None:
            await over(under_way.task, wait)
            return
        # The query runs in another process, so its row in the database is polled.
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            row = await asyncio.to_thread(self._queries.find, query_id)
            if row is None or row.status != "running":
                return
            await asyncio.sleep(min(POLL, max(0.0, deadline - time.monotonic())))

    def progress(self, query_id: UUID, elapsed: float) -> dict[str, float]:
        """Seconds since the reservation, and from it to the deadline; both are public.

        Before its begin, a query counts as if it began now. The process that runs it knows alone.
        """
        under_way, expected = self._under_way.get(query_id), elapsed
        if under_way is not None:
            begin = under_way.ticket.begin
            waited = elapsed if begin is None else begin - under_way.started
            expected = waited + self._clock.next_tick(under_way.length, elapsed - waited)
        return {"elapsed": round(elapsed, 3), "expected": round(expected, 3)}

    async def close(self) -> None:
        """Wait until all running queries have settled, because their charges are kept."""
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None

    def _accepted(self, under_way: UnderWay, request: QueryRequest) -> Reply:
        """The reply 202 while a query is under way."""
        elapsed = time.monotonic() - under_way.started
        location = f"{PATH}/{under_way.reservation.query_id}"
        body = {
            "id": str(under_way.reservation.query_id),
            "status": "running",
            "dataset": request.dataset,
            "dataset_version": under_way.reservation.version,
            "query": request.query.model_dump(mode="json"),
            **self.progress(under_way.reservation.query_id, elapsed),
        }
        headers = {"Location": location, "Retry-After": "1"}
        return Reply(under_way.reservation.query_id, 202, written(body).encode(), headers)

    async def _finish(self, under_way: UnderWay, begun: asyncio.Future[float]) -> Reply:
        """Wait for the work, settle, and return the reply at its deadline.

        Raises, also at a deadline: QueryReleased if the query was cancelled; StillRunning or
            CommitUnknown if it has no answer for a reason outside of its work.
        """
        id = under_way.reservation.query_id
        settled: bool | Exception
        try:
            await self._begin(under_way, begun)
            reply = await self._outcome(under_way)
            settled = reply if isinstance(reply, Exception) else False
            if not isinstance(reply, Exception):
                settled = await self._settle(under_way, reply)
            # An answer that was stored after its deadline leaves at the next tick, one of the
            # public instants at equal distances. So the time of its storing stays hidden.
            elapsed = time.monotonic() - under_way.begin
            length = self._clock.next_tick(under_way.length, elapsed)
            self.late += bool(self._clock.tick) and length > under_way.ticket.length
            await until(under_way.begin + length)
            if isinstance(settled, Exception):
                raise settled
            assert not isinstance(reply, Exception)
            if not settled:
                # Another attempt has stored its answer, which is the only one that may leave. So
                # the result of this attempt is dropped.
                return await self._winner(id)
            return Reply(id, *reply)
        finally:
            # Removes the query from the table of queries under way. A newer attempt of this process
            # at the same query may be in its row by now, and must stay.
            if self._under_way.get(id) is under_way:
                del self._under_way[id]

    def _start(self, under_way: UnderWay, request: QueryRequest, priced: Priced) -> None:
        """Begin the work: a light query runs here and now, any other in a thread."""
        ticket, kinds = under_way.ticket, priced.cost.work.keys()
        is_awaited = under_way.begin + under_way.length <= under_way.awaited_until
        is_loaded = self._clock.tick > 0 or kinds <= self._warm
        is_inline = is_awaited and ticket.cost <= INLINE and is_loaded
        run = self._execution.inline if is_inline else self._execution.job
        try:
            under_way.job = run(self._compute, under_way, request, priced)
        except Exception as error:
            # The scheduler starts other queries after this one.
            under_way.work_started = under_way.work_ended = time.monotonic()
            under_way.job = asyncio.get_running_loop().create_future()
            under_way.job.set_exception(error)
        if is_loaded:
            return

        def warm(job: asyncio.Future[tuple[int, bytes]]) -> None:
            if not job.cancelled() and job.exception() is None:
                self._warm.update(kinds)

        # The next query of these kinds finds their kernels compiled and loaded.
        under_way.job.add_done_callback(warm)

    async def _outcome(self, under_way: UnderWay) -> tuple[int, bytes] | Exception:
        """Status and body, or the reason why there are none, when they are to be stored."""
        id, ticket, job = under_way.reservation.query_id, under_way.ticket, under_way.job
        assert job is not None, "the scheduler starts the work when it begins the query"
        if not await self._in_time(job, under_way):
            # A kernel cannot be stopped: it keeps its slot until it ends, and its result is lost.
            job.add_done_callback(read_exception)
            job.add_done_callback(lambda _: self._scheduler.finish(ticket, time.monotonic()))
            return StillRunning(id)
        # A late event loop may come here after the deadline: then the slot is free one tick later.
        elapsed = time.monotonic() - under_way.begin
        end = under_way.begin + self._clock.next_tick(under_way.length, elapsed)
        self._scheduler.finish(ticket, end)
        try:
            return job.result()
        except OUTSIDE as error:
            log.error("a query ended without an answer", error=type(error).__qualname__)
            return StillRunning(id)

    async def _in_time(self, job: asyncio.Future[Any], under_way: UnderWay) -> bool:
        """Wait until the work is to be stored. Returns False if it misses its last deadline.

        Only work that ends too late misses a deadline. If the event loop sees its end too late, its
        answer leaves one tick later, like any that is stored late.
        """
        if not self._clock.tick:
            if not job.done():
                await asyncio.wait([job])
            return True
        await self._has_started(job, under_way)
        first = under_way.length
        for misses in range(MOST_MISSES + 1):
            under_way.length = first * 2.0**misses
            instant = await self._to_store(job, under_way)
            if under_way.work_ended is not None and under_way.work_ended <= instant:
                await asyncio.wait([job])
                await until(instant)
                return True
            self.misses += 1
            log.error("a query has missed its deadline")
        return False

    async def _has_started(self, job: asyncio.Future[Any], under_way: UnderWay) -> None:
        """Wait until the work has started, and move the deadline if it started too late."""
        ticket = under_way.ticket
        while True:
            started = under_way.work_started or time.monotonic()
            moved = self._clock.moved(ticket.length, ticket.cost, started - under_way.begin)
            under_way.length = max(under_way.length, moved)
            if under_way.work_started is not None:
                return
            await self._to_store(job, under_way)

    async def _to_store(self, job: asyncio.Future[Any], under_way: UnderWay) -> float:
        """Wait until the work ends or is to be stored; returns the monotonic time of the latter."""
        instant = under_way.begin + under_way.length - self._clock.allowance
        await over(job, max(0.0, instant - time.monotonic()))
        return instant

    async def _settle(self, under_way: UnderWay, reply: tuple[int, bytes]) -> bool | Exception:
        """Store the reply. Returns False if another attempt did, or the error to raise later.

        A failure must also leave at the deadline, so that it does not reveal the run time.
        """
        (status, body), reservation = reply, under_way.reservation
        elapsed = self._clock.next_tick(under_way.length, time.monotonic() - under_way.begin)
        after = under_way.begin - under_way.started + elapsed
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

    async def _begin(self, under_way: UnderWay, begun: asyncio.Future[float]) -> None:
        """Wait until the query begins.

        Raises: QueryReleased when it was cancelled and its charge is released; StillRunning when
            it was cancelled and the charge may stand, so that the same key runs it later.
        """
        if not begun.done():
            await asyncio.wait([begun])
        if not begun.cancelled():
            return
        reservation = under_way.reservation
        try:
            released = await self._ledger.release(reservation)
        except StorageError:
            released = False
        if released:
            raise QueryReleased(reservation.query_id)
        raise StillRunning(reservation.query_id)

    async def _keep_all(self) -> None:
        """Renew all leases three times per lease, so no other process runs these queries."""
        while True:
            await asyncio.sleep(self._lease / 3)
            reservations = [under_way.reservation for under_way in self._under_way.values()]
            # A failed renewal is repeated at the next round. If the lease is lost meanwhile, the
            # settlement detects it and stores nothing.
            with suppress(StorageError):
                if reservations:
                    await self._ledger.renew(*reservations)

    async def _winner(self, query_id: UUID) -> Reply:
        """Returns the stored reply of another attempt, after its deadline."""
        while True:
            row = await asyncio.to_thread(self._queries.find, query_id)
            if row is not None and row.answer is not None and row.answer_status is not None:
                return replayed(query_id, row.answer_status, row.answer)
            await asyncio.sleep(POLL)

    def _compute(
        self, under_way: UnderWay, request: QueryRequest, priced: Priced
    ) -> tuple[int, bytes]:
        """Status and body of the reply. Raises: ``OUTSIDE``, for a failure that is not the work's.

        It opens no file and starts no thread.
        """
        under_way.work_started = time.monotonic()
        reservation = under_way.reservation
        dataset, kernels = priced.dataset, self._execution.queries
        try:
            context = QueryContext(
                under_way.records, dataset, request.loss, self._randomness, kernels
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
            under_way.work_ended = time.monotonic()


def replayed(query_id: UUID, status: int, body: bytes) -> Reply:
    return Reply(query_id, status, body, {"Idempotency-Replayed": "true"})
