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

Here are the steps up to "reserve", and what callers read of a query under way. The steps from
"begins" on are in ``app.engine.attempts``.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from app.contract.errors import WarmingUp
from app.contract.ids import uuid7
from app.engine.admission import InFlight, Limits
from app.engine.attempts import Attempt, Attempts
from app.engine.deadlines import Clock
from app.engine.execution import inline_if_embedded
from app.engine.reply import Reply, replayed
from app.engine.requests import FORM, PATH, Priced, QueryRequest, written
from app.engine.schedule import Ticket
from app.engine.scheduler import Scheduler
from app.engine.waiting import over, read_exception
from app.queries import Query
from app.queries.parts.cost import Cost, Speeds
from mechanisms.model.records import Records
from storage.catalogue.datasets import Datasets
from storage.catalogue.record_versions import RecordVersions
from storage.database.database import Database
from storage.errors import NoRecords, NotOpen, QueryReleased, StillRunning, TooLate
from storage.files.labels import DistantLabels
from storage.ledger.ledger import Ledger, Replay, Reserve
from storage.people.users import User
from storage.queries.history import Queries, QueryRow
from storage.queries.lookup import QueryLookup

#: Seconds between two reads of the row of a query that runs in another process.
POLL = 0.1


class Answering:
    """Charges queries and has them answered, and shows those that run in this process."""

    def __init__(
        self,
        *,
        database: Database,
        ledger: Ledger,
        datasets: Datasets,
        versions: RecordVersions,
        queries: Queries,
        attempts: Attempts,
        clock: Clock,
        speeds: Callable[[], Speeds | None],
        in_flight: InFlight,
        scheduler: Scheduler,
        limits: Limits,
        warm_up: Callable[[], Awaitable[bool]],
    ) -> None:
        self._database, self._ledger, self._versions = database, ledger, versions
        self._lookup, self._queries = QueryLookup(database, datasets, ledger), queries
        self._attempts, self._clock, self._speeds = attempts, clock, speeds
        self._in_flight, self._scheduler, self._limits = in_flight, scheduler, limits
        self._warm_up = warm_up
        #: The tasks of queries that are being charged or under way. ``close`` waits for them,
        #: because their charges stay in the ledger.
        self._running: set[asyncio.Task[Reply | Exception]] = set()
        #: The running downloads of node lists from the store of records. Callers that need the same
        #: list wait for one download.
        self._fetching: dict[DistantLabels, asyncio.Task[object]] = {}

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
        facts = looked_up.facts
        if facts.public is None:
            # The owner has not uploaded the graph's node list yet, so the query has no price.
            raise NoRecords(looked_up.name)
        priced = request.priced(facts.public, looked_up.counts_rho)
        seconds = self._seconds(priced.query, priced.cost)
        if not looked_up.version:
            raise NoRecords(looked_up.name)

        refusal = looked_up.refusal(priced.charge)
        if refusal is not None:
            try:
                raise refusal
            finally:
                # The refusal refers to this frame by its traceback. If the frame referred to the
                # refusal too, both would stay in memory until a garbage collection.
                del refusal
        admit()
        self._in_flight.enter(analyst.id)
        task: asyncio.Task[Reply | Exception] | None = None
        try:
            if facts.names is not None and not facts.names.at_hand and request.query.names_nodes():
                await self._fetch(facts.names)
            if not await self._warm_up():
                raise WarmingUp
            records = self._versions.opened.get(looked_up.id, looked_up.version)
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
            ticket = self._ticket(analyst.id, priced, seconds)
            charged: asyncio.Future[Attempt] = asyncio.get_running_loop().create_future()
            awaited_until = time.monotonic() + wait
            run = self._run(reserve, request, priced, records, ticket, charged, awaited_until)
            task = asyncio.create_task(run)
        finally:
            if task is None:
                self._in_flight.leave(analyst.id)
        # If the caller is cancelled, the ledger may charge the query all the same. So its work
        # begins then too, and its answer is stored under its key.
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # The task ends at a deadline, never at the end of the work. So a reply of 202 reveals no
        # more about a run time than the deadlines do.
        if not await over(task, wait):
            await asyncio.wait((task, charged), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return self._accepted(charged.result(), request)
        outcome = task.result()
        if isinstance(outcome, Reply):
            return outcome
        try:
            raise outcome
        finally:
            # As above: the task and the attempt, which ``charged`` holds, refer to the error too.
            del outcome, task, charged

    async def _run(
        self,
        reserve: Reserve,
        request: QueryRequest,
        priced: Priced,
        records: Records,
        ticket: Ticket,
        charged: asyncio.Future[Attempt],
        awaited_until: float,
    ) -> Reply | Exception:
        """Charge a query, do its work, and return its reply, or the one stored under its key.

        An error is returned and not raised. Raised, it would refer to this frame by its traceback,
        and so to its own task: the records would stay in memory until a garbage collection.
        Danger: must run in a task that is not cancelled, so that every charge is followed by work.
        Both are one task: work that begins in the same iteration of the event loop as the charge
        becomes known can join the next commit.
        """
        try:
            outcome = await self._ledger.reserve(reserve)
            if isinstance(outcome, Replay):
                return self._replayed(outcome)
            if outcome.form is not None:
                # A later attempt computes what the first one was charged for. Since then the
                # account may have begun or ceased to count in ρ, and a later version of the service
                # may have other defaults.
                request = request.in_form(outcome.form)
                priced = request.priced_at(priced.dataset, outcome.charged_rho)
                speeds = self._speeds()
                assert speeds is not None, "the query had a price"
                ticket = self._ticket(reserve.analyst_id, priced, priced.cost.seconds(speeds))
            now, task = time.monotonic(), asyncio.current_task()
            assert task is not None, "this coroutine runs in a task"
            attempt = Attempt(outcome, records, ticket, now, task, ticket.length, awaited_until)
            self._attempts.enter(attempt, request, priced)
            charged.set_result(attempt)
            return await self._attempts.finish(attempt)
        except Exception as error:
            return error.with_traceback(None)
        finally:
            self._in_flight.leave(reserve.analyst_id)

    def deadline(self, query: Query, cost: Cost) -> float:
        """The seconds from the begin of a query to its deadline; public, and so free.

        Raises: TooCostly; WarmingUp before the speeds of this machine are measured.
        """
        return round(self._clock.length(self._seconds(query, cost)), 6)

    def _ticket(self, analyst_id: int, priced: Priced, seconds: float) -> Ticket:
        """The place of a query in the schedule; ``seconds`` are its public cost."""
        return Ticket(analyst_id, self._clock.length(seconds), seconds, priced.cost.bytes)

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
        is_under_way = self._attempts.find(row.id) is not None
        return row.as_running() if is_under_way and row.is_settled else row

    def _replayed(self, replay: Replay) -> Reply:
        if self._attempts.find(replay.query_id) is not None:
            raise StillRunning(replay.query_id)
        return replayed(replay.query_id, replay.status, replay.body)

    async def cancel(self, query_id: UUID) -> None:
        """Release the charge of a query that has not begun. Raises: TooLate if it has begun."""
        attempt = self._attempts.find(query_id)
        if attempt is None or not attempt.is_first:
            raise TooLate(query_id)
        if not self._scheduler.cancel(attempt.ticket):
            raise TooLate(query_id)
        if not isinstance(await asyncio.shield(attempt.task), QueryReleased):
            raise TooLate(query_id)

    async def wait_for(self, query_id: UUID, wait: float) -> None:
        """Return at the query's deadline, or after ``wait`` seconds if that comes first."""
        attempt = self._attempts.find(query_id)
        if attempt is not None:
            await over(attempt.task, wait)
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

        Before its begin, a query counts as if it began now. Only the process that runs a query
        knows its deadline: any other one returns ``elapsed`` for both.
        """
        attempt, expected = self._attempts.find(query_id), elapsed
        if attempt is not None:
            begin = attempt.ticket.begin
            waited = elapsed if begin is None else begin - attempt.started
            expected = waited + self._clock.next_tick(attempt.length, elapsed - waited)
        return {"elapsed": round(elapsed, 3), "expected": round(expected, 3)}

    async def close(self) -> None:
        """Wait until all running queries have settled, because their charges are kept."""
        await asyncio.gather(*self._running, return_exceptions=True)
        self._attempts.close()

    def _accepted(self, attempt: Attempt, request: QueryRequest) -> Reply:
        """The reply 202 while a query is under way."""
        elapsed = time.monotonic() - attempt.started
        location = f"{PATH}/{attempt.reservation.query_id}"
        body = {
            "id": str(attempt.reservation.query_id),
            "status": "running",
            "dataset": request.dataset,
            "dataset_version": attempt.reservation.version,
            "query": request.query.model_dump(mode="json"),
            **self.progress(attempt.reservation.query_id, elapsed),
        }
        headers = {"Location": location, "Retry-After": "1"}
        return Reply(attempt.reservation.query_id, 202, written(body).encode(), headers)
