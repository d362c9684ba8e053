"""The path of an upload: received → checked → coded → prepared → published, or refused.

Only the owner sees errors that depend on the uploaded records. Analysts read the previous version
until the new one is published.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from starlette.concurrency import run_in_threadpool

from app.config.settings import Settings
from app.engine.execution import Execution
from app.engine.opening import Opener
from app.engine.upload import Stopped, Upload, refusal, write_body
from app.engine.upload_recovery import UploadRecovery
from app.engine.waiting import read_exception
from mechanisms.model.domains import Dataset, TableDomain
from storage.catalogue.datasets import Datasets, StoredDataset
from storage.catalogue.record_versions import RecordVersions
from storage.errors import NoRecords, NotFound, StorageError
from storage.files.folders import remove_folder
from storage.files.free_space import room
from storage.files.manifest import check_files, manifest_digest
from storage.ingest.limits import UploadLimits
from storage.people.users import User, Users
from storage.records.data_folder import Files
from storage.records.preparation import prepare_upload
from storage.records.tickets import Ticket

log = structlog.get_logger("privypurse.uploads")

#: Seconds between two heartbeats. Each extends the lease of an upload (the time for which this
#: process has it to itself) to one minute from then.
HEARTBEAT = 5.0
#: The number of threads that read and prepare uploads. The compiled kernels of uploads run in the
#: pool of threads that queries use too.
READERS = 1


@dataclass(eq=False)
class _Progress:
    """The share of a preparation that is done, and whether the preparation must stop."""

    share: float = 0.0
    stopped: bool = False

    def __call__(self, share: float) -> None:
        if self.stopped:
            raise Stopped
        self.share = share


class Uploads:
    """Receives uploads, and prepares at most ``READERS`` of them at a time."""

    def __init__(
        self,
        *,
        settings: Settings,
        files: Files,
        datasets: Datasets,
        versions: RecordVersions,
        users: Users,
        execution: Execution,
        opener: Opener,
    ) -> None:
        self._settings, self._files, self._opener = settings, files, opener
        self._versions, self._execution = versions, execution
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="upload")
        self._running: set[asyncio.Task[int]] = set()
        self._progress: set[_Progress] = set()
        self._local: set[int] = set()
        self._recovery = UploadRecovery(
            files=files,
            datasets=datasets,
            versions=versions,
            users=users,
            local=self._local,
            resume=self._begin,
            refuse=self._refuse,
            tidy=self.tidy,
        )

    def start(self) -> None:
        """Start periodic searches for interrupted uploads and for files to remove."""
        self._recovery.start()

    async def receive(self, stream: AsyncIterator[bytes], closing: ExitStack) -> Path:
        """Write a body to a file that is removed when ``closing`` is closed.

        Raises: TooLarge past the limit; BodyTooSlow when nothing arrives for long; OutOfRoom.
        """
        with room():
            file = closing.enter_context(self._files.incoming(self._settings.upload_limit))
            await write_body(file, stream, self._settings.body_timeout)
            return file.path

    async def publish(
        self,
        dataset: StoredDataset,
        public: Dataset,
        path: Path,
        closing: ExitStack,
        *,
        media_type: str,
        gzipped: bool,
        actor: User,
    ) -> int | None:
        """Prepare and publish the records in ``path``; returns the number of the new version.

        Returns None if that takes longer than the setting ``upload_wait``. The preparation then
        continues, and its owner follows it in the status of the dataset.
        ``closing`` is closed when the preparation ends.

        Raises: UploadRunning; the errors of the disk or the store if the records cannot be kept
            for other processes; before the wait is over also InvalidRecords, TooLarge, and
            NoRecords when they were withdrawn in the meantime.
        """
        ticket = Ticket(dataset.name, actor.name, path.name, media_type, gzipped)
        with closing:
            upload_id = await run_in_threadpool(
                self._versions.begin_upload,
                dataset.name,
                actor=actor,
                created_us=dataset.created_us,
            )
            try:
                ticket = await run_in_threadpool(self._offer, upload_id, ticket, path)
            except Exception as error:
                await self._refuse(upload_id, ticket, error)
                raise
            closing = closing.pop_all()
        task = self._begin(Upload(upload_id, dataset, public, path, closing, ticket, actor))
        await asyncio.wait({task}, timeout=self._settings.upload_wait)
        return task.result() if task.done() else None

    async def close(self) -> None:
        """Stop the running preparations without publishing. Their owners see the reason."""
        self._recovery.close()
        for progress in self._progress:
            progress.stopped = True
        await asyncio.gather(*self._running, return_exceptions=True)
        self._readers.shutdown()

    def tidy(self, name: str | None = None) -> None:
        """Delete the arrays of versions that no query will open again, of one dataset or of all."""
        try:
            self._versions.remove_unused(name)
        except (OSError, StorageError) as error:
            # Nothing depends on the removal of old versions. No query opens their arrays again, and
            # the next call tries to remove them again.
            log.error("cannot remove old versions", error=type(error).__qualname__)

    def limits(self) -> UploadLimits:
        """The published limits of every upload to this service."""
        return UploadLimits(
            decompressed_bytes=self._settings.decompressed_limit,
            memory_bytes=self._settings.memory_limit,
            preparation_work=self._settings.preparation_limit,
        )

    def _begin(self, upload: Upload) -> asyncio.Task[int]:
        self._local.add(upload.id)
        progress = _Progress()
        self._progress.add(progress)
        task = asyncio.create_task(self._finish(upload, progress))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._local.discard(upload.id))
        # Without this callback asyncio would log the exception. The stored state of the upload
        # shows the failure.
        task.add_done_callback(read_exception)
        return task

    async def _finish(self, upload: Upload, progress: _Progress) -> int:
        folder = self._files.staging_folder(upload.dataset.id)
        heartbeat = asyncio.create_task(self._renew(upload.id, progress))
        try:
            rows = await asyncio.get_running_loop().run_in_executor(
                self._readers,
                self._prepare,
                upload,
                folder,
                progress,
            )
            try:
                version = await run_in_threadpool(self._publish, upload, folder, rows)
            except NotFound:
                # The owner withdrew the records while they were being prepared.
                raise NoRecords("the records were withdrawn") from None
            # The version is published. So the upload has succeeded, even if this process cannot
            # open it for queries.
            await run_in_threadpool(self._opener.publish, upload.dataset.id, version)
            await run_in_threadpool(self.tidy, upload.dataset.name)
            return version
        except Exception as error:
            if not isinstance(error, StorageError | Stopped):
                log.error("upload failed", error=type(error).__qualname__)
            await run_in_threadpool(self._versions.refuse_upload, upload.id, refusal(error))
            raise
        finally:
            heartbeat.cancel()
            self._progress.discard(progress)
            await run_in_threadpool(self._drop, upload.id, upload.ticket)
            await run_in_threadpool(upload.closing.close)
            # If the folder of the upload cannot be removed completely, a later sweep removes the
            # rest.
            with suppress(OSError):
                await run_in_threadpool(remove_folder, folder)

    def _prepare(self, upload: Upload, folder: Path, progress: _Progress) -> int | None:
        """Prepare the arrays and compare them with their digests, as every opening does."""
        with room():
            rows = prepare_upload(
                upload.path,
                media_type=upload.ticket.media_type,
                gzipped=upload.ticket.gzipped,
                dataset=upload.public,
                folder=folder,
                executor=self._execution.preparation,
                limits=self.limits(),
                progress=progress,
                key=self._person_key(upload),
            )
            check_files(folder)
            return rows

    def _person_key(self, upload: Upload) -> bytes | None:
        domain = upload.public.domain
        if not isinstance(domain, TableDomain) or domain.person is None:
            return None
        return self._versions.person_key(upload.dataset.id)

    def _publish(self, upload: Upload, folder: Path, rows: int | None) -> int:
        with room():
            manifest = manifest_digest(folder)
            return self._versions.publish(
                upload.id, folder, actor=upload.actor, rows=rows, manifest=manifest
            )

    async def _renew(self, upload_id: int, progress: _Progress) -> None:
        """Heartbeat: renews the lease of the upload, and stores its progress for the owner."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            detail = {"progress": round(progress.share, 3)}
            # A heartbeat may fail without harm, whatever its error: the lease lasts as long as
            # twelve of them. Without any, another process would prepare the upload too.
            try:
                await run_in_threadpool(self._versions.keep_upload, upload_id, detail)
            except Exception as error:
                log.error("an upload gave no sign of life", error=type(error).__qualname__)

    async def _refuse(self, upload_id: int, ticket: Ticket | None, error: Exception) -> None:
        await run_in_threadpool(self._versions.refuse_upload, upload_id, refusal(error))
        await run_in_threadpool(self._drop, upload_id, ticket)

    def _offer(self, upload_id: int, ticket: Ticket, path: Path) -> Ticket:
        """Store the records and the ticket where other processes can read them."""
        with room():
            ticket = self._files.tickets.offer(upload_id, ticket, path)
            self._files.tickets.leave(upload_id, ticket)
            return ticket

    def _drop(self, upload_id: int, ticket: Ticket | None) -> None:
        try:
            self._files.tickets.drop(upload_id, ticket)
        except (OSError, StorageError) as error:
            # No process resumes an upload that has ended, so the remaining files do no harm. A
            # later sweep removes them.
            log.error("cannot remove an upload", error=type(error).__qualname__)
