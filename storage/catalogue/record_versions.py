"""The versions of the records of datasets: uploaded, published, opened, withdrawn and removed."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from storage.catalogue import retention, versions
from storage.catalogue.dataset_rows import id_of
from storage.catalogue.dataset_states import record_dataset, record_version
from storage.catalogue.datasets import Datasets
from storage.catalogue.person_keys import delete_person_key, person_key
from storage.catalogue.replacement import hold_description
from storage.database.database import Database
from storage.database.tables import dataset_version
from storage.errors import CommitUnknown, DescriptionReplaced, StorageError
from storage.ledger.freezing import OPERATOR
from storage.people.users import User
from storage.records.data_folder import Files
from storage.records.open_records import OpenRecords
from storage.records.retention import References


class RecordVersions:
    """The versions of all datasets of one database; safe to share between threads.

    ``opened`` holds the versions that are open in this process.
    """

    def __init__(self, database: Database, files: Files, datasets: Datasets) -> None:
        self._database, self._files, self._datasets = database, files, datasets
        self.opened = OpenRecords(files, self._folder_of)

    def begin_upload(self, name: str, *, actor: User, created_us: int | None = None) -> int:
        """The id of a new upload. ``keep_upload`` must follow every few seconds.

        ``created_us``: the moment of the description by which the records are to be prepared.
        Raises: NotFound; UploadRunning while another upload has its lease; DescriptionReplaced if
            the dataset has another description by now.
        """

        def work(connection: Connection) -> int:
            dataset_id = id_of(connection, name)
            if created_us not in (None, hold_description(connection, dataset_id)):
                raise DescriptionReplaced("the description was replaced meanwhile")
            upload = versions.begin_upload(connection, dataset_id)
            detail = {"upload": upload}
            record_dataset(connection, actor.id, dataset_id, "records.upload", detail)
            return upload

        return self._database.write(work)

    def keep_upload(self, upload: int, detail: Mapping[str, Any] | None = None) -> None:
        """Heartbeat: extends the lease of an upload by a minute, and stores its progress."""
        self._database.write(lambda connection: versions.hold_upload(connection, upload, detail))

    def claim_upload(self, upload: int) -> bool:
        """Take over an upload whose lease expired. Returns False for any other upload.

        ``keep_upload`` must follow every few seconds.
        """
        hold = partial(versions.hold_upload, upload_id=upload, if_expired=True)
        return self._database.write(hold)

    def refuse_upload(self, upload: int, detail: Mapping[str, Any]) -> None:
        """End an upload. Only the owner may see ``detail``."""
        self._database.write(lambda connection: versions.refuse_upload(connection, upload, detail))

    def publish(
        self,
        upload: int,
        folder: Path,
        *,
        actor: User,
        rows: int | None = None,
        manifest: bytes | None = None,
    ) -> int:
        """Publish a prepared folder as the next version. Returns the number of the version.

        ``rows``: the row count of a table under the relation ``replace``, else None. ``manifest``:
        the digest of the manifest of its arrays, 32 bytes, which the journal states. After an error
        nothing has changed, and ``folder`` has its old path, unless the commit is unknown.
        Raises: NotFound if the upload has ended; InvalidRecords if an earlier version fixed
            another row count; StoreFailed; CommitUnknown.
        """
        moved: list[tuple[int, int]] = []

        def take_back() -> None:
            if moved:
                self._files.take_back(folder, *moved.pop())

        def work(connection: Connection) -> int:
            take_back()
            dataset_id, version = versions.next_version(connection, upload, rows, remote, manifest)
            action, detail = "records.publish", {"version": version}
            record_version(connection, actor.id, dataset_id, version, action)
            record_dataset(connection, actor.id, dataset_id, action, detail, in_trail=False)
            self._files.publish(folder, dataset_id, version)
            moved.append((dataset_id, version))
            return version

        with self._files.keep(folder, upload) as remote:
            try:
                return self._database.write(work)
            except CommitUnknown:
                raise  # the version may be published, so its folder must stay
            except BaseException:
                take_back()
                raise

    def person_key(self, dataset_id: int) -> bytes:
        """The secret by which rows of persons are chosen, for preparing an upload.

        Its first use draws it, and a withdrawal deletes it.
        """
        return self._database.write(lambda connection: person_key(connection, dataset_id))

    def needed(self, dataset_id: int | None = None) -> Sequence[Any]:
        """The versions that must be open: of one dataset or of all (``versions.needed_versions``).

        Raises: Busy if the database cannot be reached now.
        """
        with self._database.read() as connection:
            return versions.needed_versions(connection, dataset_id)

    def open(self, row: Any, **how: Any) -> None:
        """Open a version of ``needed``; ``how`` are the keywords of ``OpenRecords.open``.

        A version of an earlier release has no digest of its manifest yet: the first opening stores
        it, with its fact in the journal.
        Raises: the errors of ``OpenRecords.open``; Busy if the digest cannot be stored now.
        """
        public = self._datasets.facts(row).public
        assert public is not None, "records are published after the node list"
        expected = row.manifest_digest
        self.opened.open(row.id, row.version, public.domain, expected=expected, **how)
        if expected is None:
            self._adopt(row.id, row.version, self.opened.manifest(row.id, row.version))

    def _adopt(self, dataset_id: int, version: int, manifest: bytes) -> None:
        def work(connection: Connection) -> None:
            versions.lock_cap(connection, dataset_id)
            if versions.adopt_manifest(connection, dataset_id, version, manifest):
                record_version(connection, OPERATOR, dataset_id, version, "records.adopt")

        self._database.write(work)

    def withdraw(self, name: str, *, actor: User) -> None:
        """Let no further query read the records. The ledger and the stored answers stay.

        The secret by which rows of persons were chosen is deleted.

        Raises: NotFound; NoRecords if there is nothing to withdraw.
        """

        def work(connection: Connection) -> None:
            dataset_id = id_of(connection, name)
            detail = {"version": versions.withdraw(connection, dataset_id)}
            delete_person_key(connection, dataset_id)
            record_dataset(connection, actor.id, dataset_id, "records.withdraw", detail)

        self._database.write(work)

    def published(self, dataset_id: int) -> list[versions.Version]:
        """All published versions, newest first. Only the owner may see them."""
        with self._database.read() as connection:
            return versions.published_versions(connection, dataset_id)

    def remove_unused(self, name: str | None = None) -> list[int]:
        """Delete the arrays of versions that no query can open. Returns their numbers.

        Without a name it covers all datasets, because a running query may have kept arrays from
        an earlier removal. Raises: the last OSError or StorageError, after trying all versions.
        """
        with self._database.read() as connection:
            dataset_id = None if name is None else id_of(connection, name)
            unused = versions.removable_versions(connection, dataset_id)
        failed: OSError | StorageError | None = None
        for dataset_id, version, folder in unused:
            self.opened.forget(dataset_id, version)
            try:
                self._files.remove_version(dataset_id, version, folder)
            except (OSError, StorageError) as error:
                failed = error  # The error is raised after the loop has tried the other versions.
                continue
            self._database.write(partial(versions.mark_removed, dataset_id, version))
        if failed is not None:
            raise failed
        return [version for _, version, _ in unused]

    def claim_files(self) -> None:
        """Record this ledger as the owner of the files. Raises: OtherLedger."""
        with self._database.read() as connection:
            ledger = retention.ledger_name(connection)
        self._files.claim(ledger)

    def sweep(self) -> None:
        """Remove files of crashed processes, and files of an object store that no row names.

        Raises: StoreFailed, Busy; then the caller must call it again.
        """

        def references() -> References | None:
            self._database.write(retention.end_lost_uploads)
            with self._database.read() as connection:
                return retention.read_references(connection)

        self._files.sweep(references)

    def _folder_of(self, dataset_id: int, version: int) -> str | None:
        """The folder of a version in an object store; None if it is in a data folder."""
        v = dataset_version.c
        folders = select(v.folder).where(v.dataset_id == dataset_id, v.version == version)
        with self._database.read() as connection:
            return connection.execute(folders).scalar_one_or_none()
