"""Prepared records in an object store, for processes that share no data folder.

    arrays/<upload>-<random>/<file>   a prepared version, complete before it is published
    nodes/<random>/<file>             the node list of a graph, complete before a row names it
    incoming/, cluster/               as in a mounted folder (``storage.records.data_folder``)
    ledger                            the name of the only ledger that may sweep this store

Only the database states the folder of each version. The transaction that publishes a version writes
that name, and does not access the store. So a folder that a row names is in the store, and a folder
that no row names may be swept. Names reveal no more than those of a mounted folder.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from storage.errors import CommitUnknown, OtherLedger, StoreFailed
from storage.files.folders import remove_folder
from storage.files.free_space import room
from storage.files.labels import DistantLabels, Labels, NodeLabels, open_labels, write_labels
from storage.files.manifest import (
    DIGESTS,
    MANIFEST,
    DamagedFolder,
    files_of,
    is_without_digests,
)
from storage.records.data_folder import Files
from storage.records.retention import AGE, OWNER, References, is_orphan
from storage.s3.cache import CachedStore


class RemoteFiles(Files):
    """The data folder of one process below ``root``, with the shared files in an object store."""

    def __init__(self, root: Path, store: CachedStore) -> None:
        super().__init__(root, store)
        self._store = store

    def claim(self, ledger: str) -> None:
        """Record ``ledger`` as the owner if there is none. Raises: OtherLedger, StoreFailed."""
        try:
            owner = self._store.read(OWNER).decode("ascii", "replace")
        except FileNotFoundError:
            self._store.write(OWNER, lambda out: out.write(ledger.encode()))
            return
        if owner != ledger:
            raise OtherLedger("the store of prepared records belongs to another ledger")

    def usable(self) -> bool:
        return super().usable() and self._store.answers()

    def sweep(self, references: Callable[[], References | None] = lambda: None) -> None:
        """Remove orphans from this machine's folder and from the store. Raises: StoreFailed."""
        super().sweep(references)
        oldest = time.time() - AGE
        stored = self._store.names("")
        # Danger: the rows of the database must be read after the files are listed. Then the rows
        # name every listed file that was published meanwhile, and the sweep keeps it.
        referred = references()
        failed: StoreFailed | None = None
        for name, written in stored.items():
            if self._store.closing:
                return
            if is_orphan(name, referred, old=written < oldest):
                try:
                    self._store.remove(name)
                except StoreFailed as error:
                    if not self._store.answers():
                        raise
                    # The error is raised after the sweep has tried the other files.
                    failed = error
        if failed is not None:
            raise failed

    @contextmanager
    def keep_labels(self, labels: Labels | None) -> Iterator[str | None]:
        if labels is None:
            yield None
            return
        # The names of the nodes are written in the folder of dataset 0, a number that no dataset
        # has, because their own dataset may not be registered yet.
        staging = self.staging_folder(0)
        try:
            with room():
                write_labels(staging, labels)
                with self._keep(staging, "nodes", token_hex(16)) as folder:
                    yield folder
        finally:
            remove_folder(staging)

    def write_labels(self, dataset_id: int, labels: Labels) -> None:
        """Do nothing, because ``keep_labels`` has copied the names to the store."""

    def labels(self, dataset_id: int, folder: str | None = None, length: int = 0) -> Labels:  # noqa: ARG002
        return DistantLabels(length, lambda: self._fetch_labels(folder))

    def keep(self, staging: Path, upload: int) -> AbstractContextManager[str]:
        return self._keep(staging, "arrays", f"{int(upload)}-{token_hex(16)}")

    def publish(self, staging: Path, dataset_id: int, version: int) -> None:
        """Do nothing: a version is published by the row that names its folder in the store."""

    def take_back(self, staging: Path, dataset_id: int, version: int) -> None:
        """Do nothing: the rolled-back transaction left no row that names the folder."""

    @contextmanager
    def version(
        self,
        dataset_id: int,  # noqa: ARG002
        version: int,  # noqa: ARG002
        where: Callable[[], str | None] = lambda: None,
    ) -> Iterator[Path]:
        folder = where()
        try:
            with self._folder("arrays", folder) as path:
                yield path
        except DamagedFolder:
            # The damage may be in the cached copies alone, so the next attempt fetches them again.
            self._store.drop_copies(f"arrays/{folder}")
            raise

    def remove_version(self, dataset_id: int, version: int, folder: str | None = None) -> None:  # noqa: ARG002
        if folder is not None:
            self._remove(f"arrays/{folder}")

    def _fetch_labels(self, folder: str | None) -> NodeLabels:
        try:
            with self._folder("nodes", folder) as path:
                labels = open_labels(path)
                self._store.hold(path, labels)
                return labels
        except FileNotFoundError:
            raise StoreFailed("the store of prepared records has lost a list of nodes") from None

    @contextmanager
    def _folder(self, top: str, folder: str | None) -> Iterator[Path]:
        if folder is None:
            raise FileNotFoundError("the arrays were not written to a store")
        with ExitStack() as stack:
            manifest = stack.enter_context(self._store.file(f"{top}/{folder}/{MANIFEST}"))
            for file in files_of(manifest.parent):
                stack.enter_context(self._store.file(f"{top}/{folder}/{file}"))
            if is_without_digests(manifest.parent):
                with suppress(FileNotFoundError):  # the file is absent until ``adopt`` writes it
                    stack.enter_context(self._store.file(f"{top}/{folder}/{DIGESTS}"))
            yield manifest.parent

    @contextmanager
    def _keep(self, staging: Path, top: str, folder: str) -> Iterator[str]:
        try:
            for path in sorted(staging.iterdir()):
                self._store.put(path, f"{top}/{folder}/{path.name}")
                self._store.adopt(path, f"{top}/{folder}/{path.name}")
            yield folder
        except CommitUnknown:
            raise  # the commit may have succeeded, so a row may name the folder
        except BaseException:
            # A later sweep removes the files that cannot be removed now.
            with suppress(StoreFailed):
                self._remove(f"{top}/{folder}")
            raise

    def _remove(self, name: str) -> None:
        # Danger: an earlier removal may have been interrupted. The names of the files come from a
        # listing of the store, and not from a manifest, so a repeated call removes what remains.
        for file in self._store.names(name):
            self._store.remove(file)
