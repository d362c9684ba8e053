"""Prepared records in a store elsewhere, where the data folder of every process is its own.

    arrays/<random>/<file>        a folder of arrays, whole before anything names it
    datasets/<id>/<version>       which folder a published version is, and its files
    datasets/<id>/nodes           the same of the node list of a graph that has one
    incoming/, cluster/           as in a mounted folder (``storage.files``)

Arrays are stored before the transaction that publishes them; in it, only the few bytes that name
them are written. Names say what those of a mounted folder say, and are random beyond that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.cache import CachedStore
from storage.errors import StoreFailed
from storage.files import Files
from storage.folders import remove_folder
from storage.labels import Labels, NodeLabels, open_labels, write_labels


@dataclass(frozen=True)
class _Pointer:
    """Which folder a name stands for, and the files in it."""

    folder: str
    files: list[str]

    def names(self) -> list[str]:
        return [f"arrays/{self.folder}/{file}" for file in self.files]


class RemoteFiles(Files):
    """The same files, those that processes share in a store; the rest is below ``root``."""

    def __init__(self, root: Path, store: CachedStore) -> None:
        super().__init__(root, store)
        self._store = store

    def sweep(self, older_than: float = 86_400.0) -> None:
        """Remove what crashed processes left, here and in the store. Raises: StoreFailed."""
        super().sweep(older_than)
        oldest = time.time() - older_than
        stored = self._store.names("")
        named = set()
        for name in stored:
            if name.startswith("datasets/"):
                with suppress(FileNotFoundError):  # removed since by another process
                    named.add(self._pointer(name).folder)
        for name, written in stored.items():
            top, _, rest = name.partition("/")
            left = top in ("incoming", "cluster") or (
                top == "arrays" and rest.partition("/")[0] not in named
            )
            if left and written < oldest:
                self._store.remove(name)

    def write_labels(self, dataset_id: int, labels: Labels) -> None:
        staging = self.staging_folder(dataset_id)
        try:
            write_labels(staging, labels)
            self.keep(staging)
            self._point(_nodes(dataset_id), staging)
        finally:
            remove_folder(staging)

    def labels(self, dataset_id: int) -> NodeLabels:
        with self._folder(_nodes(dataset_id)) as folder:
            return open_labels(folder)

    @contextmanager
    def version(self, dataset_id: int, version: int) -> Iterator[Path]:
        with self._folder(_version(dataset_id, version)) as folder:
            yield folder

    def keep(self, staging: Path) -> None:
        for path in sorted(staging.iterdir()):
            name = f"arrays/{_random(staging)}/{path.name}"
            self._store.put(path, name)
            self._store.adopt(path, name)

    def publish(self, staging: Path, dataset_id: int, version: int) -> None:
        self._point(_version(dataset_id, version), staging)

    def take_back(self, staging: Path, dataset_id: int, version: int) -> None:
        """What was written is named again only by whoever writes over it."""

    def discard(self, staging: Path) -> None:
        # What is left is swept later, as it is after a crash.
        with suppress(StoreFailed):
            for path in staging.iterdir():
                self._store.remove(f"arrays/{_random(staging)}/{path.name}")

    def remove_version(self, dataset_id: int, version: int) -> None:
        with suppress(FileNotFoundError):
            pointer = self._pointer(_version(dataset_id, version))
            for name in pointer.names():
                self._store.remove(name)
        # Last, so that a removal that was cut short can be done again.
        self._store.remove(_version(dataset_id, version))

    @contextmanager
    def _folder(self, name: str) -> Iterator[Path]:
        pointer = self._pointer(name)
        with ExitStack() as held:
            files = [held.enter_context(self._store.file(name)) for name in pointer.names()]
            yield files[0].parent

    def _point(self, name: str, staging: Path) -> None:
        files = sorted(path.name for path in staging.iterdir())
        content = json.dumps(asdict(_Pointer(_random(staging), files))).encode()
        self._store.write(name, lambda out: out.write(content))

    def _pointer(self, name: str) -> _Pointer:
        return _Pointer(**json.loads(self._store.read(name)))


def _random(staging: Path) -> str:
    return staging.name.removeprefix("staging-")


def _version(dataset_id: int, version: int) -> str:
    return f"datasets/{int(dataset_id)}/{int(version)}"


def _nodes(dataset_id: int) -> str:
    return f"datasets/{int(dataset_id)}/nodes"
