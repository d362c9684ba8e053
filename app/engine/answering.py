"""The path of a query: the file to read first.

    look up → replay → price → refuse → open here? → reserve ── begins ── compute → settle → reply

Steps before "reserve" read public facts only, and a refusal there is free of charge. The service
has opened and checked the arrays before, so nothing of a query can fail between its charge and its
work for want of a file. From the begin on, every outcome costs the full price: the answer, or one
fixed error if the work itself fails. Both leave at a public release instant. A failure outside of
the work, such as a lost database, leaves the query charged and without an answer: the same key runs
it again under the same charge. A query can be cancelled until it gets a place to run in, which also
happens at a public instant. If the client disconnects, the work continues and its answer is stored
under the idempotency key.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from starlette.concurrency import run_in_threadpool

from app.contract.ids import uuid7
from app.contract.problems import query_failed_body
from app.engine.admission import InFlight, check_cost
from app.engine.deadlines import next_from, next_instant, release_after
from app.engine.execution import Execution, inline_if_embedded
from app.engine.places import Places
from app.engine.requests import FORM, PATH, Priced, QueryRequest, written
from app.engine.waiting import over
from app.queries import QueryContext
from app.queries.parts.cost import Cost
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
#: Failures of the machine and not of the work: no descriptor, disk full, no memory, no cluster.
#: They leave the query charged and without an answer, and never become its answer.
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
    """A query of this process between its reservation and its release instant.

    ``begun`` gets its result when the query gets a place. No record is read before that.
    """

    reservation: Reservation
    records: Records
    cost: Cost
    analyst_id: int
    started: float
    begun: asyncio.Future[float]
    task: asyncio.Task[Reply] | None = None

    def cancel(self) -> bool:
        """Prevent the query from reading records. Returns False if it has begun already."""
        # An earlier attempt may have read records, so only a first attempt can be cancelled.
        return self.reservation.attempt == 1 and self.begun.cancel()


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
        interval: float,
        lease: float,
        in_flight: InFlight,
        places: Places,
        memory: int,
        cells: int,
        limit: float,
    ) -> None:
        self._ledger, self._datasets, self._queries = ledger, datasets, queries
        self._lookup = QueryLookup(database, datasets, ledger)
        self._execution, self._randomness, self._interval = execution, randomness, interval
        self._lease, self._database = lease, database
        self._in_flight, self._places = in_flight, places
        self._memory, self._cells, self._limit = memory, cells, limit
        self._keeper: asyncio.Task[None] | None = None
        self._under_way: dict[UUID, UnderWay] = {}
        #: The running downloads of node lists from the store of records.
        self._fetching: dict[DistantLabels, asyncio.Task[object]] = {}
        #: Query kinds that have run once: their light queries now run on the event loop.
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

        ``admit`` refuses by raising. It is called after the price and before the in-flight limits.
        Raises: the errors of ``app.contract.problems``, before any record is read, free of charge.
        """
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
            raise NoRecords(looked_up.name)  # no node list was uploaded yet
        priced = request.priced(looked_up.public)
        check_cost(request.query, priced.cost, self._memory, self._cells)
        if not looked_up.version:
            raise NoRecords(looked_up.name)

        admit()
        self._in_flight.enter(analyst.id)
        outcome: Reservation | Replay | None = None
        try:
            refusal = looked_up.refusal(request.loss)
            if refusal is not None:
                raise refusal
            if (
                looked_up.names is not None
                and not looked_up.names.at_hand
                and request.query.names_nodes()
            ):
                await self._fetch(looked_up.names)
            records = self._datasets.opened.get(looked_up.id, looked_up.version)
            if records is None:
                raise NotOpen("the records of this dataset are not open here now")
            outcome = await self._ledger.reserve(
                Reserve(
                    query_id=uuid7(),
                    analyst_id=analyst.id,
                    dataset_id=looked_up.id,
                    key=key,
                    body_hash=body_hash,
                    charge=request.loss,
                    request=request.canonical,
                    version=looked_up.version,
                    form=FORM,
                    equals=request.equals,
                )
            )
        finally:
            if not isinstance(outcome, Reservation):
                self._in_flight.leave(analyst.id)
        if not isinstance(outcome, Reservation):
            return self._replayed(outcome)
        now = time.monotonic()
        begun = self._places.enter(now, priced.cost.bytes)
        under_way = UnderWay(outcome, records, priced.cost, analyst.id, now, begun)
        self._under_way[outcome.query_id] = under_way
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_all())
        under_way.task = asyncio.create_task(self._finish(under_way, request, priced))
        return await self._reply_within(under_way, request, wait)

    async def _fetch(self, names: DistantLabels) -> None:
        """Download a node list before anything is charged; concurrent callers share one thread.

        The list is public, so the time that this takes is public too. Raises: StoreFailed.
        """
        task = self._fetching.get(names)
        if task is None:
            task = self._fetching[names] = asyncio.create_task(run_in_threadpool(names.here))
            task.add_done_callback(lambda _: self._fetching.pop(names))
            # Reads the exception, because every caller may have been cancelled by then.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(task)

    def as_seen(self, row: QueryRow) -> QueryRow:
        """The row as it may be shown: a settled query counts as running until its release."""
        return row.as_running() if row.id in self._under_way and row.is_settled else row

    def _replayed(self, replay: Replay) -> Reply:
        if replay.query_id in self._under_way:
            raise StillRunning(replay.query_id)
        return replayed(replay.query_id, replay.status, replay.body)

    async def cancel(self, query_id: UUID) -> None:
        """Release the charge of a query that has not begun. Raises: TooLate if it has begun."""
        under_way = self._under_way.get(query_id)
        if under_way is None or under_way.task is None or not under_way.cancel():
            raise TooLate(query_id)
        try:
            await asyncio.shield(under_way.task)
        except QueryReleased:
            return
        raise TooLate(query_id)

    async def wait_for(self, query_id: UUID, wait: float) -> None:
        """Return at the query's release instant, or after ``wait`` seconds if that comes first."""
        under_way = self._under_way.get(query_id)
        if under_way is not None and under_way.task is not None:
            await over(under_way.task, wait)
            return
        # The query runs in another process, so its row in the database is polled.
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            row = await asyncio.to_thread(self._queries.find, query_id)
            if row is None or row.status != "running":
                return
            await asyncio.sleep(min(POLL, max(0.0, deadline - time.monotonic())))

    def progress(self, started_ago: float) -> dict[str, float]:
        """The time since reservation and the next release instant in seconds; both are public."""
        expected = next_instant(started_ago, self._interval)
        return {"elapsed": round(started_ago, 3), "expected": round(expected, 3)}

    async def close(self) -> None:
        """Wait until all running queries have settled, because their charges are kept."""
        tasks = [u.task for u in self._under_way.values() if u.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None

    async def _reply_within(self, under_way: UnderWay, request: QueryRequest, wait: float) -> Reply:
        assert under_way.task is not None
        # The task ends at a release instant, never at the end of the work. A reply of 202 therefore
        # reveals no more about a run time than the release instants do.
        task, done = under_way.task, False
        try:
            done = await over(task, wait)
        finally:
            if not done:
                # Reads the exception, because other code may not. The row records a cancellation.
                task.add_done_callback(lambda late: late.cancelled() or late.exception())
        if done:
            return task.result()
        elapsed = time.monotonic() - under_way.started
        location = f"{PATH}/{under_way.reservation.query_id}"
        body = {
            "id": str(under_way.reservation.query_id),
            "status": "running",
            "dataset": request.dataset,
            "dataset_version": under_way.reservation.version,
            "query": request.query.model_dump(mode="json"),
            **self.progress(elapsed),
        }
        headers = {"Location": location, "Retry-After": "1"}
        return Reply(under_way.reservation.query_id, 202, written(body).encode(), headers)

    async def _finish(self, under_way: UnderWay, request: QueryRequest, priced: Priced) -> Reply:
        """Compute, settle, and return the reply at its release instant.

        Raises, also at a release instant: QueryReleased if the query was cancelled; StillRunning
            or CommitUnknown if it has no answer for a reason outside of its work.
        """
        id = under_way.reservation.query_id
        settled: bool | Exception
        try:
            begun = await self._begin(under_way)
            reply, after = await self._reply(under_way, begun, request, priced)
            settled = reply if isinstance(reply, Exception) else False
            if not isinstance(reply, Exception):
                settled = await self._settle(under_way.reservation, reply, after)
            late = time.monotonic() - under_way.started
            if late > after:
                after = next_instant(late, self._interval)
            remaining = under_way.started + after - time.monotonic()
            if remaining > 0:
                await asyncio.sleep(remaining)
            if isinstance(settled, Exception):
                raise settled
            assert not isinstance(reply, Exception)
            if not settled:
                # Another attempt has stored its answer, which is the only one that may leave.
                return await self._winner(id)
            return Reply(id, *reply)
        finally:
            self._in_flight.leave(under_way.analyst_id)
            # A newer attempt at the query may have replaced this entry.
            if self._under_way.get(id) is under_way:
                del self._under_way[id]

    async def _reply(
        self, under_way: UnderWay, begun: float | None, request: QueryRequest, priced: Priced
    ) -> tuple[tuple[int, bytes] | Exception, float]:
        """Status and body, or the reason why there are none; and when they may leave.

        The latter in seconds from the reservation.
        """
        id = under_way.reservation.query_id
        if begun is None:
            elapsed = time.monotonic() - under_way.started
            return StillRunning(id), release_after(elapsed, self._interval)
        work = (under_way, request, priced)
        kind, light = request.query.name, request.query.is_light(priced.dataset)
        reply: tuple[int, bytes] | Exception
        try:
            if light and kind in self._warm:
                reply = self._compute(*work)
                instant = self._places.leave(begun, under_way.cost.bytes)
            else:
                reply, instant = await self._within_limit(begun, work)
                # The first query of a kind may compile kernels. Later ones need no thread.
                self._warm |= {kind} if light else set()
        except OUTSIDE as error:
            instant = self._places.leave(begun, under_way.cost.bytes)
            log.error("a query ended without an answer", error=type(error).__qualname__)
            reply = StillRunning(id)
        return reply, next_from(under_way.started, instant, self._interval)

    async def _settle(
        self, reservation: Reservation, reply: tuple[int, bytes], after: float
    ) -> bool | Exception:
        """Store the reply. Returns False if another attempt did, or the error to raise later.

        A failure must also leave at a release instant, so that it does not reveal the run time.
        """
        status, body = reply
        release_us = reservation.reserved_us + round(after * 1e6)
        try:
            return await self._ledger.settle(
                reservation, status=status, body=body, release_us=release_us
            )
        except CommitUnknown as error:
            return error
        except Exception as error:
            # The charge stays, and the same key answers later: no other error would be true.
            log.error("an answer cannot be stored", error=type(error).__qualname__)
            return StillRunning(reservation.query_id)

    async def _begin(self, under_way: UnderWay) -> float | None:
        """When the query begins; None if it does not, and its charge cannot be released.

        Raises: QueryReleased when it was cancelled or waited too long; its charge is released.
        """
        begun = under_way.begun
        if not begun.done():
            await over(begun, self._limit)
        if begun.done() and not begun.cancelled():
            return begun.result()
        begun.cancel()
        reservation = under_way.reservation
        try:
            released = await self._ledger.release(reservation)
        except StorageError:
            return None  # the charge may stand, so the same key runs the query later
        if released:
            raise QueryReleased(reservation.query_id)
        return None

    async def _within_limit(
        self, begun: float, work: tuple[UnderWay, QueryRequest, Priced]
    ) -> tuple[tuple[int, bytes], float]:
        """Returns status and body of the reply, and the instant at which the place becomes free.

        After the public time limit the reply is the fixed failure. A kernel cannot be stopped: it
        keeps its place until it ends, and its result is dropped.
        """
        job, under_way = self._execution.job(self._compute, *work), work[0]
        remaining = begun + self._limit - time.monotonic()
        if not await over(job, max(0.0, remaining)):
            job.add_done_callback(lambda late: late.cancelled() or late.exception())
            job.add_done_callback(lambda _: self._places.leave(begun, under_way.cost.bytes))
            instant = begun + release_after(time.monotonic() - begun, self._interval)
            return (500, query_failed_body(under_way.reservation.query_id)), instant
        return job.result(), self._places.leave(begun, under_way.cost.bytes)

    async def _keep_all(self) -> None:
        """Renew all leases three times per lease, so no other process runs these queries."""
        while True:
            await asyncio.sleep(self._lease / 3)
            reservations = [under_way.reservation for under_way in self._under_way.values()]
            # A failed renewal is repeated. The settlement detects a lease that was lost.
            with suppress(StorageError):
                if reservations:
                    await self._ledger.renew(*reservations)

    async def _winner(self, query_id: UUID) -> Reply:
        """Returns the stored reply of another attempt, after its release instant."""
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
        reservation = under_way.reservation
        dataset, kernels = priced.dataset, self._execution.kernels
        try:
            context = QueryContext(
                under_way.records, dataset, request.loss, self._randomness, kernels
            )
            release = request.query.compute(context)
            return 201, priced.reply(reservation, release.answer)
        except OUTSIDE:
            raise
        except Exception:
            # Any error may depend on records. The reply is one fixed text, and nothing is logged.
            return 500, query_failed_body(reservation.query_id)


def replayed(query_id: UUID, status: int, body: bytes) -> Reply:
    return Reply(query_id, status, body, {"Idempotency-Replayed": "true"})
