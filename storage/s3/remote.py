"""Prepared records in a store elsewhere, where the data folder of every process is its own.

    arrays/<upload>-<random>/<file>   what an upload was prepared to, whole before it is published
    nodes/<random>/<file>             the node list of a graph, whole before the graph has it
    incoming/, cluster/               as in a mounted folder (``storage.records.data_folder``)
    ledger                            whose records these are: no other ledger may sweep here

Which folder is which version's stands in the database alone, written by the transaction that
publishes it; nothing in that transaction talks to the store. So what a row names is in the store,
and what none names may be swept. Names say what those of a mounted folder say, and are random
beyond that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from storage.errors import OtherLedger, StoreFailed
from storage.files.arrays import MANIFEST, files_of
from storage.files.folders import remove_folder
from storage.files.labels import DistantLabels, Labels, NodeLabels, open_labels, write_labels
from storage.records.data_folder import Files
from storage.records.retention import AGE, OWNER, References, is_orphan
from storage.s3.cache import CachedStore


class RemoteFiles(Files):
    """The same files, those that processes share in a store; the rest is below ``root``."""

    def __init__(self, root: Path, store: CachedStore) -> None:
        super().__init__(root, store)
        self._store = store

    def claim(self, ledger: str) -> None:
        """Make the store this ledger's, if it is nobody's yet. Raises: OtherLedger, StoreFailed."""
        try:
            owner = self._store.read(OWNER).decode("ascii", "replace")
        except FileNotFoundError:
            self._store.write(OWNER, lambda out: out.write(ledger.encode()))
            return
        if owner != ledger:
            raise OtherLedger("the store of prepared records belongs to another ledger")

    def usable(self) -> bool:
        return super().usable() and self._store.answers()

    def close_idle(self, close_one: Callable[[], bool]) -> None:
        self._store.close_one = close_one

    def sweep(self, references: Callable[[], References | None] = lambda: None) -> None:
        """Remove what crashed processes left, here and in the store. Raises: StoreFailed."""
        super().sweep(references)
        oldest = time.time() - AGE
        stored = self._store.names("")
        # After the list: what is in it and was published meanwhile, a row names by now.
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
                    failed = error  # the others go all the same
        if failed is not None:
            raise failed

    def keep_labels(self, labels: Labels) -> str:
        # No dataset has that number, and the one that will have the names may have none yet.
        staging, folder = self.staging_folder(0), token_hex(16)
        try:
            write_labels(staging, labels)
            self._keep(staging, _nodes(folder))
        finally:
            remove_folder(staging)
        return folder

    def discard_labels(self, folder: str | None) -> None:
        if folder is not None:
            self._discard(_nodes(folder))

    def write_labels(self, dataset_id: int, labels: Labels) -> None:
        """They are in the store by now."""

    def labels(self, dataset_id: int, folder: str | None = None, length: int = 0) -> Labels:  # noqa: ARG002
        return DistantLabels(length, lambda: self._fetched(folder))

    def keep(self, staging: Path, upload: int) -> str:
        folder = f"{int(upload)}-{token_hex(16)}"
        self._keep(staging, _arrays(folder))
        return folder

    def discard(self, folder: str | None) -> None:
        if folder is not None:
            self._discard(_arrays(folder))

    def publish(self, staging: Path, dataset_id: int, version: int) -> None:
        """The row that names its folder is all there is to it."""

    def take_back(self, staging: Path, dataset_id: int, version: int) -> None:
        """The row has gone with its transaction."""

    @contextmanager
    def version(
        self,
        dataset_id: int,  # noqa: ARG002
        version: int,  # noqa: ARG002
        where: Callable[[], str | None] = lambda: None,
    ) -> Iterator[Path]:
        folder = where()
        if folder is None:
            raise FileNotFoundError("the version was not published to a store")
        with self._folder(_arrays(folder)) as path:
            yield path

    def remove_version(self, dataset_id: int, version: int, folder: str | None = None) -> None:  # noqa: ARG002
        if folder is not None:
            self._remove(_arrays(folder))

    def _fetched(self, folder: str | None) -> NodeLabels:
        try:
            if folder is None:
                raise FileNotFoundError
            with self._folder(_nodes(folder)) as path:
                labels = open_labels(path)
                self._store.hold(path, labels)
                return labels
        except FileNotFoundError:
            raise StoreFailed("the store of prepared records has lost a list of nodes") from None

    @contextmanager
    def _folder(self, name: str) -> Iterator[Path]:
        with ExitStack() as held:
            manifest = held.enter_context(self._store.file(f"{name}/{MANIFEST}"))
            for file in files_of(manifest.parent):
                held.enter_context(self._store.file(f"{name}/{file}"))
            yield manifest.parent

    def _keep(self, staging: Path, name: str) -> None:
        try:
            for path in sorted(staging.iterdir()):
                self._store.put(path, f"{name}/{path.name}")
                self._store.adopt(path, f"{name}/{path.name}")
        except BaseException:
            self._discard(name)
            raise

    def _discard(self, name: str) -> None:
        # What is left is swept later, as it is after a crash.
        with suppress(StoreFailed):
            self._remove(name)

    def _remove(self, name: str) -> None:
        # By the list, so that a removal that was cut short can be done again.
        for file in self._store.names(name):
            self._store.remove(file)


def _arrays(folder: str) -> str:
    return f"arrays/{folder}"


def _nodes(folder: str) -> str:
    return f"nodes/{folder}"
