"""The data folder: every folder 0700, every file 0600, every name chosen by the server.

    DIR/incoming/                        uploads and their tickets (``storage.records.tickets``),
                                         removed with the end of the upload
    DIR/cluster/                         jobs for other machines (``storage.cluster.scratch``)
    DIR/datasets/<id>/nodes/             the node list of a graph that has one
    DIR/datasets/<id>/staging-<random>/  a version being prepared
    DIR/datasets/<id>/<version>/         a published version, never changed again

Files are synced before their folder gets its final name, so a folder with a final name is complete.
``storage.s3.remote`` describes the layout for prepared records in an object store.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex

from storage.errors import TooLarge
from storage.files.folders import create_file, make_folder, remove_folder, sync
from storage.files.free_space import has_room, room
from storage.files.labels import Labels, open_labels, write_labels
from storage.files.manifest import DIGESTS, digests_of
from storage.files.shared import Shared
from storage.records.retention import AGE, References
from storage.records.tickets import Tickets


class IncomingFile:
    """The file of an upload that is being received; ``size`` is the number of bytes so far."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.size = path, 0
        self._limit = limit
        self._file = create_file(path)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append ``data``. Raises: TooLarge as soon as the sum passes the limit."""
        self.size += len(data)
        if self.size > self._limit:
            raise TooLarge(f"an upload may have at most {self._limit} bytes")
        self._file.write(data)

    def close(self) -> None:
        """End the writing, so that the file can be read."""
        self._file.close()


class Files:
    """The folders under one root. Methods are safe to call from any thread or process."""

    def __init__(self, root: Path, shared: Shared | None = None) -> None:
        self.root = root
        #: The files that other processes of the service and the workers of a cluster also read.
        self.shared = Shared(root) if shared is None else shared
        self.tickets = Tickets(self.shared)
        for folder in (root, root / "incoming", root / "datasets"):
            make_folder(folder)

    @contextmanager
    def incoming(self, limit: int) -> Iterator[IncomingFile]:
        """A new file for an upload of at most ``limit`` bytes, removed when the block ends."""
        file = IncomingFile(self.root / "incoming" / token_hex(16), limit)
        try:
            yield file
        finally:
            try:
                # Closing the file writes its buffer, which fails if the disk is full.
                file.close()
            finally:
                file.path.unlink(missing_ok=True)

    def usable(self) -> bool:
        """True if the shared files can be used now. Does not block."""
        return has_room(self.root)

    def claim(self, ledger: str) -> None:
        """Record which ledger owns an object store. Does nothing here: a folder needs no owner."""

    def sweep(
        self,
        references: Callable[[], References | None] = lambda: None,  # noqa: ARG002
    ) -> None:
        """Remove the files of crashed processes that were not changed for a day.

        Younger files may belong to another process that shares the folder. ``references`` reads
        from the database which files of an object store must stay. It returns None if the database
        may have lost rows.
        """
        oldest = time.time() - AGE
        for pattern in ("incoming/*", "cluster/*", "datasets/*/staging-*", "datasets/*/.*"):
            for path in self.root.glob(pattern):
                with suppress(FileNotFoundError):  # another process may remove the file meanwhile
                    if path.stat().st_mtime >= oldest:
                        continue
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink()

    def dataset_folder(self, dataset_id: int) -> Path:
        folder = self.root / "datasets" / str(int(dataset_id))
        make_folder(folder)
        return folder

    def keep_labels(self, labels: Labels | None) -> AbstractContextManager[str | None]:  # noqa: ARG002
        """Copy a node list to an object store, yield its folder there, and remove it on failure.

        The transaction that names the nodes runs inside the block. The copy stays if its commit is
        unknown. Raises: ValueError for repeated labels; StoreFailed; OutOfRoom. Here it only yields
        None.
        """
        return nullcontext()

    def write_labels(self, dataset_id: int, labels: Labels) -> None:
        """Store the node list of a dataset. Replaces a list that a crashed transaction stored.

        Raises: OutOfRoom.
        """
        with room():
            folder = self.dataset_folder(dataset_id) / "nodes"
            remove_folder(folder)
            write_labels(folder, labels)

    def labels(self, dataset_id: int, folder: str | None = None, length: int = 0) -> Labels:  # noqa: ARG002
        """The stored node list, memory-mapped. Raises: FileNotFoundError; OutOfRoom.

        If it is in the ``folder`` of an object store, the first use fetches its ``length`` names.
        """
        with room():
            return open_labels(self.dataset_folder(dataset_id) / "nodes")

    def staging_folder(self, dataset_id: int) -> Path:
        """A new path for a version that is being prepared. Does not create the folder."""
        return self.dataset_folder(dataset_id) / f"staging-{token_hex(16)}"

    def version_folder(self, dataset_id: int, version: int) -> Path:
        """The path of a published version. Does not create the folder."""
        return self.dataset_folder(dataset_id) / str(int(version))

    @contextmanager
    def version(
        self,
        dataset_id: int,
        version: int,
        where: Callable[[], str | None] = lambda: None,  # noqa: ARG002
    ) -> Iterator[Path]:
        """The folder of a published version, valid within the block; mappings outlive the block.

        ``where`` reads from the database in which folder of an object store the version is.
        """
        yield self.version_folder(dataset_id, version)

    def adopt(self, folder: Path) -> None:
        """Take digests of an open version that an earlier release prepared without digests.

        If several processes do so, the digests of one of them stay, for all of them.
        """
        name = self.shared.name_of(folder)
        self.shared.write_new(f"{name}/{DIGESTS}", digests_of(folder))

    def keep(self, staging: Path, upload: int) -> AbstractContextManager[str | None]:  # noqa: ARG002
        """Copy a prepared version to an object store, as ``keep_labels`` copies a node list."""
        return nullcontext()

    def publish(self, staging: Path, dataset_id: int, version: int) -> None:
        """Give a prepared version its final name. The caller must have locked the dataset's row.

        A transaction that never committed may have left a folder with this name. The lock ensures
        that no process reads it, so it is replaced.
        """
        folder = self.version_folder(dataset_id, version)
        remove_folder(folder)
        os.rename(staging, folder)
        sync(folder.parent)

    def take_back(self, staging: Path, dataset_id: int, version: int) -> None:
        """Undo ``publish`` in a transaction that was rolled back."""
        os.rename(self.version_folder(dataset_id, version), staging)

    def remove_version(self, dataset_id: int, version: int, folder: str | None = None) -> None:  # noqa: ARG002
        """Delete a version that no query can open. ``folder``: its folder in an object store."""
        remove_folder(self.version_folder(dataset_id, version))
