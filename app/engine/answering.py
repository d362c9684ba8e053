"""The path of a query: the file to read first.

    replay → look up → price → check → reserve → ── arrays are opened ── → compute → settle → reply

Everything before the line reads public facts only and is free when it fails. From the line on
every way out costs the full price and looks the same from outside: the answer or one fixed error,
at a release instant of the one clock. Until it has a place to work in, which is free at such an
instant too, a query can be cancelled. The client may go away; the work goes on and its answer is
kept under its key.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from app.contract.ids import uuid7
from app.contract.problems import query_failed_body
from app.engine.admission import InFlight
from app.engine.deadlines import next_from, next_instant, release_after
from app.engine.execution import Execution, inline_if_embedded
from app.engine.places import Places
from app.engine.requests import PATH, Priced, QueryRequest, written
from app.engine.waiting import over
from app.queries import QueryContext
from mechanisms.model.randomness import Randomness
from storage.catalogue.datasets import Datasets
from storage.database.database import Database
from storage.errors import NoRecords, QueryReleased, StillRunning, StorageError, TooLate
from storage.files.labels import DistantLabels
from storage.ledger.ledger import Ledger, Replay, Reservation, Reserve
from storage.people.users import User
from storage.queries.history import Queries, QueryRow
from storage.queries.lookup import QueryLookup

#: Seconds between two looks at a query that another process is working on.
POLL = 0.1


@dataclass(frozen=True)
class Reply:
    """What leaves: stored bytes go out as they are."""

    query_id: UUID
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class UnderWay:
    """A query of this process between its reservation and its release instant.

    ``begun`` has a result from when it has a place: the arrays are opened only then.
    """

    reservation: Reservation
    analyst_id: int
    started: float
    begun: asyncio.Future[float]
    task: asyncio.Task[Reply] | None = None

    def cancel(self) -> bool:
        """Keep the arrays closed for good; False when it has begun."""
        # An earlier attempt may have opened them: only the first can tell that nobody did.
        return self.reservation.attempt == 1 and self.begun.cancel()


class Answering:
    """Answers queries, and knows those that are under way in this process."""

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
        limit: float,
    ) -> None:
        self._ledger, self._datasets, self._queries = ledger, datasets, queries
        self._lookup = QueryLookup(database, datasets, ledger)
        self._execution, self._randomness, self._interval = execution, randomness, interval
        self._lease, self._database = lease, database
        self._in_flight, self._places, self._limit = in_flight, places, limit
        self._keeper: asyncio.Task[None] | None = None
        self._under_way: dict[UUID, UnderWay] = {}
        #: Lists of nodes that are on their way from a store.
        self._fetching: dict[DistantLabels, asyncio.Task[object]] = {}
        #: Kinds whose light queries need no thread any more.
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

        ``admit`` refuses by raising; it is asked where the contract puts the checks of load.
        Raises: the errors of ``app.contract.problems``, before any record is read, free of charge.
        """
        body_hash = request.body_hash
        looked_up = await inline_if_embedded(
            self._database, self._lookup.look_up, request.dataset, analyst, key, body_hash
        )
        if isinstance(looked_up, Replay):
            return self._replayed(looked_up)
        if looked_up.public is None:
            raise NoRecords(looked_up.name)  # the node list is still to come
        priced = request.priced(looked_up.public)
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
            outcome = await self._ledger.reserve(
                Reserve(
                    query_id=uuid7(),
                    analyst_id=analyst.id,
                    dataset_id=looked_up.id,
                    key=key,
                    body_hash=body_hash,
                    charge=request.loss,
                    request=request.canonical,
                )
            )
        finally:
            if not isinstance(outcome, Reservation):
                self._in_flight.leave(analyst.id)
        if not isinstance(outcome, Reservation):
            return self._replayed(outcome)
        now = time.monotonic()
        under_way = UnderWay(outcome, analyst.id, now, self._places.enter(now))
        self._under_way[outcome.query_id] = under_way
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_all())
        under_way.task = asyncio.create_task(self._finish(under_way, request, looked_up.id, priced))
        return await self._reply_within(under_way, request, wait)

    async def _fetch(self, names: DistantLabels) -> None:
        """Have a list of nodes here, before anything is charged; one thread for all who wait.

        How long that takes is public, as the list is. Raises: StoreFailed.
        """
        task = self._fetching.get(names)
        if task is None:
            task = self._fetching[names] = asyncio.create_task(run_in_threadpool(names.here))
            task.add_done_callback(lambda _: self._fetching.pop(names))
            # Nobody may be left to take the exception.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(task)

    def as_seen(self, row: QueryRow) -> QueryRow:
        """The row as it may be shown: what was stored late for its instant waits for the next."""
        return row.as_running() if row.id in self._under_way and row.is_settled else row

    def _replayed(self, replay: Replay) -> Reply:
        if replay.query_id in self._under_way:
            raise StillRunning(replay.query_id)
        return replayed(replay.query_id, replay.status, replay.body)

    async def cancel(self, query_id: UUID) -> None:
        """Give the charge back if the query has not begun; TooLate otherwise."""
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
        # It runs in another process: ask the database now and then.
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            row = await asyncio.to_thread(self._queries.find, query_id)
            if row is None or row.status != "running":
                return
            await asyncio.sleep(min(POLL, max(0.0, deadline - time.monotonic())))

    def progress(self, started_ago: float) -> dict[str, float]:
        """How long a query has run and when it may next end, in seconds: both public."""
        expected = next_instant(started_ago, self._interval)
        return {"elapsed": round(started_ago, 3), "expected": round(expected, 3)}

    async def close(self) -> None:
        """Wait for what is under way: its charge stands, so its answer should be kept."""
        tasks = [u.task for u in self._under_way.values() if u.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None

    async def _reply_within(self, under_way: UnderWay, request: QueryRequest, wait: float) -> Reply:
        assert under_way.task is not None
        # The deadline is checked against instants, never against the end of the work: a reply of
        # 202 must not tell more of a run time than the clock does.
        task, done = under_way.task, False
        try:
            done = await over(task, wait)
        finally:
            if not done:
                # Nobody may take the exception: that the query was cancelled stands in its row.
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

    async def _finish(
        self, under_way: UnderWay, request: QueryRequest, dataset_id: int, priced: Priced
    ) -> Reply:
        reservation = under_way.reservation
        try:
            begun = await self._begin(under_way)
            if begun is None:
                status, body = 500, query_failed_body(reservation.query_id)
                after = release_after(time.monotonic() - under_way.started, self._interval)
            else:
                work = (reservation, request, dataset_id, priced)
                kind, light = request.query.name, request.query.is_light(priced.dataset)
                # What is not open yet may have to come from a store elsewhere: that takes a thread.
                opened = light and self._datasets.opened.has(dataset_id, reservation.version)
                if opened and kind in self._warm:
                    status, body = self._compute(*work)
                    instant = self._places.leave(begun)
                else:
                    status, body, instant = await self._within_limit(
                        reservation.query_id, begun, work
                    )
                    # The first of a kind may have had its kernels compiled.
                    self._warm |= {kind} if light else set()
                after = next_from(under_way.started, instant, self._interval)
            settled: bool | Exception
            try:
                settled = await self._ledger.settle(
                    reservation,
                    status=status,
                    body=body,
                    release_us=reservation.reserved_us + round(after * 1e6),
                )
            except Exception as error:
                # What cannot be stored is refused at an instant too: the end of the work shows not.
                settled = error
            late = time.monotonic() - under_way.started
            if late > after:
                after = next_instant(late, self._interval)
            remaining = under_way.started + after - time.monotonic()
            if remaining > 0:
                await asyncio.sleep(remaining)
            if isinstance(settled, Exception):
                raise settled
            if not settled:
                # Another attempt won: its answer is the only one that may leave.
                return await self._winner(reservation.query_id)
            return Reply(reservation.query_id, status, body)
        finally:
            self._in_flight.leave(under_way.analyst_id)
            # An attempt that lost the query leaves the place to the one that has it.
            if self._under_way.get(reservation.query_id) is under_way:
                del self._under_way[reservation.query_id]

    async def _begin(self, under_way: UnderWay) -> float | None:
        """When the query begins; None when its charge stands and it has waited for too long.

        Raises: QueryReleased when it was cancelled, or has waited for too long: nothing is charged.
        """
        begun = under_way.begun
        if not begun.done():
            await over(begun, self._limit)
        if begun.done() and not begun.cancelled():
            return begun.result()
        begun.cancel()
        reservation = under_way.reservation
        if await self._ledger.release(reservation):
            raise QueryReleased(reservation.query_id)
        return None

    async def _within_limit(
        self, query_id: UUID, begun: float, work: tuple[Any, ...]
    ) -> tuple[int, bytes, float]:
        """Status and body of the reply, and the instant at which the place of the work is free.

        Once the public limit is over, that is the fixed failure. A kernel cannot be stopped: it
        works on in its place, and what it finds is thrown away.
        """
        job = self._execution.job(self._compute, *work)
        remaining = begun + self._limit - time.monotonic()
        if not await over(job, max(0.0, remaining)):
            job.add_done_callback(lambda late: late.cancelled() or late.exception())
            job.add_done_callback(lambda _: self._places.leave(begun))
            instant = begun + release_after(time.monotonic() - begun, self._interval)
            return 500, query_failed_body(query_id), instant
        instant = self._places.leave(begun)
        return *job.result(), instant

    async def _keep_all(self) -> None:
        """Renew every lease each third of it, so that nobody else runs a query that is at work."""
        while True:
            await asyncio.sleep(self._lease / 3)
            reservations = [under_way.reservation for under_way in self._under_way.values()]
            # A renewal that fails is tried again; a lease that was lost shows when it settles.
            with suppress(StorageError):
                if reservations:
                    await self._ledger.renew(*reservations)

    async def _winner(self, query_id: UUID) -> Reply:
        """The stored reply of another attempt, once it may be seen."""
        while True:
            row = await asyncio.to_thread(self._queries.find, query_id)
            if row is not None and row.answer is not None and row.answer_status is not None:
                return replayed(query_id, row.answer_status, row.answer)
            await asyncio.sleep(POLL)

    def _compute(
        self,
        reservation: Reservation,
        request: QueryRequest,
        dataset_id: int,
        priced: Priced,
    ) -> tuple[int, bytes]:
        dataset = priced.dataset
        try:
            records = self._datasets.opened.get(dataset_id, reservation.version, dataset.domain)
            context = QueryContext(
                records, dataset, request.loss, self._randomness, self._execution.kernels
            )
            release = request.query.compute(context)
            return 201, priced.reply(reservation, release.answer)
        except Exception:
            # Whatever went wrong may depend on records: one fixed text, and no word of it in logs.
            return 500, query_failed_body(reservation.query_id)


def replayed(query_id: UUID, status: int, body: bytes) -> Reply:
    return Reply(query_id, status, body, {"Idempotency-Replayed": "true"})
