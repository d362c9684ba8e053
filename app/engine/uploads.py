"""The path of an upload: received → checked → coded → prepared → published, or refused.

Whatever an upload's records make happen is told to their owner alone. Analysts go on seeing the
version that was ready before, until the new one is published.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool

from app.config.settings import MEGABYTE, Settings
from app.contract.errors import BodyTooSlow
from app.engine.execution import Execution
from mechanisms.model.domains import Dataset
from storage.catalogue.datasets import Datasets, StoredDataset
from storage.errors import InvalidRecords, NoRecords, NotFound, StorageError, StoreFailed
from storage.files.folders import remove_folder
from storage.ingest.limits import UploadLimits
from storage.people.users import User, Users
from storage.records.data_folder import Files, IncomingFile
from storage.records.preparation import prepare_upload
from storage.records.tickets import Ticket

log = structlog.get_logger("privypurse.uploads")

#: Seconds between two signs of life; the lease of an upload is a minute.
HEARTBEAT = 5.0
#: Beats between two looks for versions that were still open when they were withdrawn.
TIDY = 12
#: Seconds between two sweeps of what crashed processes and failed removals left.
SWEEP = 3600.0
#: An upload keeps this many threads busy reading; its kernels run on those of all queries.
READERS = 1
#: Processes that prepare the same upload, one after the other dying.
MOST = 3


@dataclass(frozen=True)
class Published:
    """A new version, there for queries from now on."""

    version: int


@dataclass(eq=False)
class _Progress:
    """What the preparation reported last, and whether it should go on."""

    share: float = 0.0
    stopped: bool = False

    def __call__(self, share: float) -> None:
        if self.stopped:
            raise Stopped
        self.share = share


class Stopped(Exception):
    """The service is being stopped: the upload is given up, nothing is published."""


class Interrupted(Exception):
    """The processes that prepared the upload died."""


class Uploads:
    """Receives and prepares uploads; at most ``READERS`` at a time, the others wait."""

    def __init__(
        self,
        *,
        settings: Settings,
        files: Files,
        datasets: Datasets,
        users: Users,
        execution: Execution,
    ) -> None:
        self._settings, self._files = settings, files
        self._datasets, self._users, self._execution = datasets, users, execution
        self._looking: list[asyncio.Task[None]] = []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="upload")
        self._running: set[asyncio.Task[Published]] = set()
        self._progress: set[_Progress] = set()
        #: Uploads that this process is at: not lost, however late their sign of life.
        self._here: set[int] = set()

    def start(self) -> None:
        """Look now and then for uploads whose process died, and for what others have left."""
        self._looking = [asyncio.create_task(work) for work in (self._look(), self._sweep())]

    async def receive(self, stream: AsyncIterator[bytes], kept: ExitStack) -> Path:
        """Write a body to a file that lives as long as ``kept``.

        Raises: TooLarge past the limit; BodyTooSlow when nothing arrives for long.
        """
        file = kept.enter_context(self._files.incoming(self._settings.upload_limit))
        await _write(file, stream, self._settings.body_timeout)
        return file.path

    async def publish(
        self,
        stored: StoredDataset,
        public: Dataset,
        path: Path,
        kept: ExitStack,
        *,
        media_type: str,
        gzipped: bool,
        actor: User,
    ) -> Published | None:
        """Prepare and publish the records in ``path``; None when that takes longer than a wait.

        The work then goes on; its owner follows it in the dataset's status. ``kept`` is closed
        when the work is over.

        Raises: UploadRunning; what the disk or the store says when they cannot be kept for others;
            as long as somebody waits also InvalidRecords, TooLarge, and NoRecords when they were
            withdrawn in the meantime.
        """
        ticket = Ticket(stored.name, actor.name, path.name, media_type, gzipped)
        with kept:
            upload = await run_in_threadpool(self._datasets.begin_upload, stored.name, actor=actor)
            try:
                ticket = await run_in_threadpool(self._leave, upload, ticket, path)
            except Exception as error:
                await run_in_threadpool(self._datasets.refuse_upload, upload, refusal(error))
                await run_in_threadpool(self._drop, upload, ticket)
                raise
            kept = kept.pop_all()
        task = self._begin(stored, public, path, kept, upload, ticket, actor)
        await asyncio.wait({task}, timeout=self._settings.upload_wait)
        return task.result() if task.done() else None

    def _begin(
        self,
        stored: StoredDataset,
        public: Dataset,
        path: Path,
        kept: ExitStack,
        upload: int,
        ticket: Ticket,
        actor: User,
    ) -> asyncio.Task[Published]:
        self._here.add(upload)
        progress = _Progress()
        self._progress.add(progress)
        work = self._finish(stored, public, path, kept, upload, ticket, actor, progress)
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._here.discard(upload))
        # Nobody may be left to take the exception: it is in the upload's state by then.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def close(self) -> None:
        """Give up what is under way. Nothing of it was published, and its owner is told."""
        for looking in self._looking:
            looking.cancel()
        for progress in self._progress:
            progress.stopped = True
        await asyncio.gather(*self._running, return_exceptions=True)
        self._readers.shutdown()

    async def _finish(
        self,
        stored: StoredDataset,
        public: Dataset,
        path: Path,
        kept: ExitStack,
        upload: int,
        ticket: Ticket,
        actor: User,
        progress: _Progress,
    ) -> Published:
        folder = self._files.staging_folder(stored.id)
        beating = asyncio.create_task(self._keep(upload, progress))
        try:
            prepared = await asyncio.get_running_loop().run_in_executor(
                self._readers,
                lambda: prepare_upload(
                    path,
                    media_type=ticket.media_type,
                    gzipped=ticket.gzipped,
                    dataset=public,
                    folder=folder,
                    executor=self._execution.kernels,
                    limits=self.limits(),
                    progress=progress,
                ),
            )
            try:
                version = await run_in_threadpool(
                    self._datasets.publish, upload, prepared.folder, actor=actor, rows=prepared.rows
                )
            except NotFound:
                # The owner withdrew the records while they were being prepared.
                raise NoRecords("the records were withdrawn") from None
            await run_in_threadpool(self.tidy, stored.name)
            return Published(version)
        except Exception as error:
            if not isinstance(error, StorageError | Stopped):
                log.error("upload failed", error=type(error).__qualname__)
            await run_in_threadpool(self._datasets.refuse_upload, upload, refusal(error))
            raise
        finally:
            beating.cancel()
            self._progress.discard(progress)
            await run_in_threadpool(self._drop, upload, ticket)
            await run_in_threadpool(kept.close)
            await run_in_threadpool(remove_folder, folder)

    def _leave(self, upload: int, ticket: Ticket, path: Path) -> Ticket:
        ticket = self._files.tickets.offer(upload, ticket, path)
        self._files.tickets.leave(upload, ticket)
        return ticket

    def _drop(self, upload: int, ticket: Ticket | None) -> None:
        try:
            self._files.tickets.drop(upload, ticket)
        except (OSError, StorageError) as error:
            # Nobody goes on with an upload that is over; what is left of it is swept later.
            log.error("cannot remove an upload", error=type(error).__qualname__)

    def tidy(self, name: str | None = None) -> None:
        """Delete the arrays of versions that no query will open again, of one dataset or of all."""
        try:
            self._datasets.remove_unused(name)
        except (OSError, StorageError) as error:
            # They are in nobody's way, and it is tried again.
            log.error("cannot remove old versions", error=type(error).__qualname__)

    def limits(self) -> UploadLimits:
        """The published limits of every upload to this service."""
        return UploadLimits(
            decompressed_bytes=self._settings.decompressed_limit,
            memory_bytes=self._settings.memory_limit,
            preparation_work=self._settings.preparation_limit,
        )

    async def _look(self) -> None:
        for beat in itertools.count():
            await asyncio.sleep(HEARTBEAT)
            try:
                if beat % TIDY == 0:
                    await run_in_threadpool(self.tidy)
                await run_in_threadpool(self._datasets.forget_gone)
                for upload in await run_in_threadpool(self._files.tickets.uploads):
                    if upload not in self._here:
                        await self._go_on_with(upload)
            except Exception as error:
                # Whatever is the matter with one of them, the search for others goes on.
                log.error("cannot look for uploads", error=type(error).__qualname__)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            try:
                await run_in_threadpool(self._datasets.sweep)
            except Exception as error:
                log.error("cannot sweep", error=type(error).__qualname__)

    async def _go_on_with(self, upload: int) -> None:
        """Prepare an upload here whose process has been silent for a lease, if it has."""
        if not await run_in_threadpool(self._datasets.claim_upload, upload):
            return
        tickets = self._files.tickets
        ticket = await run_in_threadpool(tickets.find, upload)
        stored = actor = path = None
        kept = ExitStack()
        if ticket is not None and ticket.attempts < MOST:
            stored = await run_in_threadpool(self._datasets.find, ticket.dataset)
            actor = await run_in_threadpool(self._users.find, ticket.actor)
            await run_in_threadpool(tickets.leave, upload, ticket.again())
            with suppress(FileNotFoundError):
                path = await run_in_threadpool(kept.enter_context, tickets.records(ticket))
        if not (ticket and stored and stored.public and actor and path):
            # What has ended several processes would end the next one too.
            await run_in_threadpool(self._datasets.refuse_upload, upload, refusal(Interrupted()))
            await run_in_threadpool(self._drop, upload, ticket)
            await run_in_threadpool(kept.close)
            return
        log.info("upload taken over")
        self._begin(stored, stored.public, path, kept, upload, ticket, actor)

    async def _keep(self, upload: int, progress: _Progress) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            detail = {"progress": round(progress.share, 3)}
            # A sign of life that fails is given again: the next one is in time as well.
            with suppress(StorageError):
                await run_in_threadpool(self._datasets.keep_upload, upload, detail)


def refusal(error: Exception) -> dict[str, Any]:
    """What the owner is told of an upload that did not become a version."""
    if isinstance(error, InvalidRecords):
        return {
            "errors": [
                {"loc": list(loc), "type": kind, "msg": msg} for loc, kind, msg in error.errors
            ]
        }
    if isinstance(error, Stopped):
        kind, msg = "stopped", "the service was stopped: upload the records again"
    elif isinstance(error, Interrupted):
        kind, msg = "interrupted", "the preparation was interrupted: upload the records again"
    elif isinstance(error, StoreFailed):
        kind, msg = "store-unavailable", f"{error}: upload the records again"
    elif isinstance(error, StorageError):
        kind, msg = "refused", str(error)
    else:
        kind, msg = "internal-error", "the service failed: upload the records again"
    return {"errors": [{"loc": ["upload"], "type": kind, "msg": msg}]}


async def _write(file: IncomingFile, stream: AsyncIterator[bytes], patience: float) -> None:
    buffer = bytearray()
    while True:
        try:
            async with asyncio.timeout(patience):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise BodyTooSlow from None
        if chunk is None:
            break
        buffer += chunk
        if len(buffer) >= MEGABYTE:
            await run_in_threadpool(file.write, bytes(buffer))
            buffer.clear()
    await run_in_threadpool(file.write, bytes(buffer))
    await run_in_threadpool(file.close)
