"""Resumes uploads whose process died, and removes files that no upload or version needs."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Set
from contextlib import ExitStack, suppress
from pathlib import Path

import structlog
from starlette.concurrency import run_in_threadpool

from app.engine.upload import Interrupted, Upload
from storage.catalogue.datasets import Datasets
from storage.catalogue.record_versions import RecordVersions
from storage.people.users import Users
from storage.records.data_folder import Files
from storage.records.tickets import Ticket

log = structlog.get_logger("privypurse.uploads")

#: Seconds between two searches for uploads whose lease has expired, because their process died.
SEARCH = 5.0
#: One in this many searches for interrupted uploads also removes withdrawn versions that no running
#: query reads any more.
TIDY = 12
#: Seconds between two removals of files that a crash or a failed removal has left behind.
SWEEP = 3600.0
#: The most processes that may try to prepare one upload. After that many failures it is refused.
MAX_ATTEMPTS = 3


class UploadRecovery:
    """Searches for interrupted uploads and unused files while the service runs.

    Args:
        local: ids of uploads that this process prepares; it never recovers these, even if their
            lease has expired.
        resume: prepares an upload in this process.
        refuse: refuses an upload by its id and drops its ticket.
        tidy: deletes the arrays of versions that no query will open again.
    """

    def __init__(
        self,
        *,
        files: Files,
        datasets: Datasets,
        versions: RecordVersions,
        users: Users,
        local: Set[int],
        resume: Callable[[Upload], object],
        refuse: Callable[[int, Ticket | None, Exception], Awaitable[None]],
        tidy: Callable[[], None],
    ) -> None:
        self._files, self._users = files, users
        self._datasets, self._versions = datasets, versions
        self._local, self._resume, self._refuse, self._tidy = local, resume, refuse, tidy
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(work) for work in (self._search(), self._sweep())]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _search(self) -> None:
        for number in itertools.count():
            await asyncio.sleep(SEARCH)
            try:
                if number % TIDY == 0:
                    await run_in_threadpool(self._tidy)
                for upload_id in await run_in_threadpool(self._files.tickets.uploads):
                    if upload_id not in self._local:
                        await self._recover(upload_id)
            except Exception as error:
                # The search continues after an error, because the remaining uploads may be
                # recoverable.
                log.error("cannot look for uploads", error=type(error).__qualname__)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            try:
                await run_in_threadpool(self._versions.sweep)
            except Exception as error:
                log.error("cannot sweep", error=type(error).__qualname__)

    async def _recover(self, upload_id: int) -> None:
        """Resume an upload here if its lease has expired and it may be prepared once more."""
        if not await run_in_threadpool(self._versions.claim_upload, upload_id):
            return
        ticket = await run_in_threadpool(self._files.tickets.find, upload_id)
        closing = ExitStack()
        upload = None
        # An upload that crashed several processes would probably crash the next one too. So it is
        # not prepared again after ``MAX_ATTEMPTS``.
        if ticket is not None and ticket.attempts < MAX_ATTEMPTS:
            upload = await self._resumable(upload_id, ticket, closing)
        if upload is None:
            await self._refuse(upload_id, ticket, Interrupted())
            await run_in_threadpool(closing.close)
            return
        log.info("upload taken over")
        self._resume(upload)

    async def _resumable(self, upload_id: int, ticket: Ticket, closing: ExitStack) -> Upload | None:
        """The upload of a ticket; None if its dataset, its actor or its file is gone."""
        tickets = self._files.tickets
        dataset = await run_in_threadpool(self._datasets.find, ticket.dataset)
        actor = await run_in_threadpool(self._users.find, ticket.actor)
        await run_in_threadpool(tickets.leave, upload_id, ticket.again())
        path: Path | None = None
        with suppress(FileNotFoundError):
            path = await run_in_threadpool(closing.enter_context, tickets.records(ticket))
        if dataset is None or dataset.public is None or actor is None or path is None:
            return None
        return Upload(upload_id, dataset, dataset.public, path, closing, ticket, actor)
