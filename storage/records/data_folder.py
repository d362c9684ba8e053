"""The data folder: every folder 0700, every file 0600, every name chosen by the server.

    DIR/incoming/                        uploads and their tickets (``storage.records.tickets``);
                                         nothing here outlives its upload
    DIR/cluster/                         jobs of other machines (``storage.cluster.scratch``)
    DIR/datasets/<id>/nodes/             the node list of a graph that has one
    DIR/datasets/<id>/staging-<random>/  a version being prepared
    DIR/datasets/<id>/<version>/         a published version, never changed again

What is written is synced before it gets its final name, so a folder with a final name is whole.
Where prepared records are in a store instead, ``storage.s3.remote`` says what is where.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from storage.errors import TooLarge
from storage.files.folders import create_file, make_folder, remove_folder, sync_folder
from storage.files.labels import Labels, open_labels, write_labels
from storage.files.shared import MountedFolder, Shared
from storage.records.retention import AGE, References
from storage.records.tickets import Tickets


class IncomingFile:
    """An upload on its way to the disk; ``size`` counts the bytes that arrived."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.size = path, 0
        self._limit = limit
        self._file = create_file(path)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append ``data``; TooLarge as soon as the sum passes the limit."""
        self.size += len(data)
        if self.size > self._limit:
            raise TooLarge(f"an upload may have at most {self._limit} bytes")
        self._file.write(data)

    def close(self) -> None:
        """No more bytes will come: the file can be read now."""
        self._file.close()


class Files:
    """The folders under one root. Methods are safe to call from any thread or process."""

    def __init__(self, root: Path, shared: Shared | None = None) -> None:
        self.root = root
        #: What other processes see too: other replicas, and the workers of a cluster.
        self.shared = MountedFolder(root) if shared is None else shared
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
            file.close()
            file.path.unlink(missing_ok=True)

    def usable(self) -> bool:
        """Whether what processes share can be used now; waits for nothing."""
        return os.access(self.root, os.R_OK | os.W_OK | os.X_OK)

    def claim(self, ledger: str) -> None:
        """Say whose the files are. A folder is that of the ledger in it."""

    def close_idle(self, close_one: Callable[[], bool]) -> None:
        """What closes the version that was used least recently, for when room is short.

        It says whether it has closed one. Here there is room for all.
        """

    def sweep(
        self,
        references: Callable[[], References | None] = lambda: None,  # noqa: ARG002
    ) -> None:
        """Remove what crashed processes left behind, untouched for a day.

        Younger files may belong to another process that shares the folder. ``known``: asks the
        database what is to stay in a store; None when that cannot be told.
        """
        oldest = time.time() - AGE
        for path in (self.root / "incoming").iterdir():
            if _untouched_since(path, oldest):
                path.unlink(missing_ok=True)
        for path in (self.root / "cluster").glob("*"):
            if _untouched_since(path, oldest):
                path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(
                    path, ignore_errors=True
                )
        for pattern in ("*/staging-*", "*/.*"):
            for path in (self.root / "datasets").glob(pattern):
                if _untouched_since(path, oldest):
                    shutil.rmtree(path, ignore_errors=True)

    def dataset_folder(self, dataset_id: int) -> Path:
        folder = self.root / "datasets" / str(int(dataset_id))
        make_folder(folder)
        return folder

    def keep_labels(self, labels: Labels) -> str | None:  # noqa: ARG002
        """Bring a node list to a store, before anybody waits; the name of its folder there.

        Raises: ValueError for labels that repeat; StoreFailed.
        """
        return None

    def discard_labels(self, folder: str | None) -> None:
        """Undo ``keep_labels``: no graph will have these names."""

    def write_labels(self, dataset_id: int, labels: Labels) -> None:
        """Store the node list of a dataset, replacing one that a crash left behind."""
        folder = self.dataset_folder(dataset_id) / "nodes"
        remove_folder(folder)
        write_labels(folder, labels)

    def labels(self, dataset_id: int, folder: str | None = None, length: int = 0) -> Labels:  # noqa: ARG002
        """The stored node list, memory-mapped; FileNotFoundError when there is none.

        One of ``length`` names in the ``folder`` of a store is fetched when a name is asked for.
        """
        return open_labels(self.dataset_folder(dataset_id) / "nodes")

    def staging_folder(self, dataset_id: int) -> Path:
        """A fresh path for a version that is being prepared; not made by this call."""
        return self.dataset_folder(dataset_id) / f"staging-{token_hex(16)}"

    def version_folder(self, dataset_id: int, version: int) -> Path:
        """Where a published version lies; not made by this call."""
        return self.dataset_folder(dataset_id) / str(int(version))

    @contextmanager
    def version(
        self,
        dataset_id: int,
        version: int,
        where: Callable[[], str | None] = lambda: None,  # noqa: ARG002
    ) -> Iterator[Path]:
        """The folder of a published version, for as long as the block; mappings outlive it.

        ``where``: asks the database for its folder in a store.
        """
        yield self.version_folder(dataset_id, version)

    def keep(self, staging: Path, upload: int) -> str | None:  # noqa: ARG002
        """Bring a prepared version to a store, before anybody waits; its folder there.

        Raises: StoreFailed; nothing of it is to stay then.
        """
        return None

    def publish(self, staging: Path, dataset_id: int, version: int) -> None:
        """Give a prepared version its final name.

        Whatever already bears the name was left by a transaction that never committed: the
        caller holds the dataset's row, so nobody can be reading it.
        """
        folder = self.version_folder(dataset_id, version)
        remove_folder(folder)
        os.rename(staging, folder)
        sync_folder(folder.parent)

    def take_back(self, staging: Path, dataset_id: int, version: int) -> None:
        """Undo ``publish`` in a transaction that was rolled back."""
        os.rename(self.version_folder(dataset_id, version), staging)

    def discard(self, folder: str | None) -> None:
        """Undo ``keep``: this version will not be published."""

    def remove_version(self, dataset_id: int, version: int, folder: str | None = None) -> None:  # noqa: ARG002
        """Delete a version that nobody will open again; ``folder``: where it is in a store."""
        remove_folder(self.version_folder(dataset_id, version))


def _untouched_since(path: Path, oldest: float) -> bool:
    try:
        return path.stat().st_mtime < oldest
    except FileNotFoundError:  # its own process was faster
        return False
