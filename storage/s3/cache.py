"""An LRU cache of an object store in a local folder: files are fetched once, checked and mapped.

    DIR/store/<name>     a fetched file; the least recently used is evicted at the limit
    DIR/store/.<random>  a file that is being fetched

The folder belongs to one process. Within a minute it loses a file that was removed from the store.
Files in use are pinned, because removing the name of a mapped file frees no space on the disk.
"""

import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from threading import Event, Lock, RLock, Thread
from weakref import WeakValueDictionary, finalize

from storage.errors import StoreFailed
from storage.files.folders import create_file, make_folder, sync
from storage.files.shared import Content, Shared
from storage.records.retention import OWNER
from storage.s3.objects import ObjectStore

#: Seconds between two comparisons of the local folder with the object store.
LOOK = 60.0
#: The most seconds that a process waits at its end for files to be removed from the store.
CLOSING = 5.0
#: A thread probes the store every ``ASK`` seconds. The store counts as failed ``PATIENCE`` seconds
#: after its last answer.
ASK, PATIENCE = 5.0, 15.0
NAME = re.compile(r"[0-9a-z][0-9a-z.-]*(/[0-9a-z][0-9a-z.-]*){0,3}")


class CachedStore(Shared):
    """Files of an object store by name, with at most ``limit`` bytes of copies on this disk."""

    def __init__(self, store: ObjectStore, root: Path, limit: int) -> None:
        super().__init__(root / "store")
        self._store, self._limit = store, limit
        make_folder(self._root)
        for partial in self._root.glob(".*"):
            partial.unlink()
        self._pins: Counter[str] = Counter()
        #: Files to be unpinned, each with the time of its last use. Finalizers append to this
        #: queue, because they must not wait for the lock.
        self._releases: deque[tuple[list[Path], float]] = deque()
        self._lock = RLock()
        #: One thread at a time fetches a file. If it fails, the threads that wait for it fail too.
        self._fetching: WeakValueDictionary[str, _Fetch] = WeakValueDictionary()
        self._removals: SimpleQueue[str | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._closing = Event()
        self._answered: float | None = None

    def start(self) -> None:
        """Start the thread that removes files and compares the folder with the store."""
        self._thread = Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def watch(self) -> None:
        """Start the thread that probes the store every few seconds."""
        self._answered = time.monotonic()
        Thread(target=self._probe, name="store-probe", daemon=True).start()

    def answers(self) -> bool:
        """True if the store has answered a recent probe of ``watch``. Does not block."""
        return self._answered is not None and time.monotonic() - self._answered < PATIENCE

    @property
    def closing(self) -> bool:
        """True if the process is ending."""
        return self._closing.is_set()

    def close(self) -> None:
        """Remove the files of ``remove_soon`` and end the threads."""
        self._closing.set()
        if self._thread is not None:
            self._removals.put(None)
            # A store that does not answer must not block shutdown. The next sweep of the store
            # removes the files that were not removed in time.
            self._thread.join(timeout=CLOSING)

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:  # noqa: ARG002
        with self._partial() as partial:
            with create_file(partial) as out:
                content(out)
            self.put(partial, name)

    def offer(self, path: Path, name: str) -> str:
        self.put(path, name)
        return name

    def put(self, path: Path, name: str) -> None:
        """Copy a local file to the store under a name."""
        self._store.put(path, _checked(name))

    def write_new(self, name: str, content: bytes) -> None:
        with self._partial() as partial:
            with create_file(partial) as out:
                out.write(content)
            self._store.put_new(partial, _checked(name))

    def adopt(self, path: Path, name: str) -> None:
        """Put a file into the cache that was just stored, so that it need not be fetched."""
        self._make_room(path.stat().st_size)
        with self._partial() as partial:
            os.link(path, partial)
            self._place(partial, self._path(name))

    def read(self, name: str) -> bytes:
        with self._partial() as partial:
            self._store.get(_checked(name), partial)
            return partial.read_bytes()

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        path = self._path(name)
        with self._lock:
            self._pins[name] += 1
        try:
            if not path.exists():
                self._fetch(name, path)
            os.utime(path)
            yield path
        finally:
            with self._lock:
                self._unpin(name)

    def hold(self, path: Path, mapped: object) -> None:
        with self._lock:
            self._unpin_released()
            paths = sorted(path.iterdir()) if path.is_dir() else [path]
            self._pins.update(str(self.name_of(one)) for one in paths)
        # A finalizer may run on any thread while any lock is held: it only appends to a queue.
        finalize(mapped, lambda: self._releases.append((paths, time.time()))).atexit = False

    def holds(self, name: str) -> bool:
        return self._store.holds(_checked(name))

    def names(self, folder: str) -> dict[str, float]:
        return {
            name: written
            for name, written in self._store.names(folder).items()
            if NAME.fullmatch(name)
        }

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._store.remove(_checked(name))
        self._drop(self._path(name))

    def remove_soon(self, name: str) -> None:
        # Finalizers call this on any thread, also on threads of libraries, so it must not block.
        self._removals.put(name)

    def drop_copies(self, folder: str) -> None:
        """Remove the cached files of a folder, so that the next use fetches them again."""
        for path in sorted((self._root / folder).glob("*")):
            self._drop(path)

    def drop_gone(self) -> None:
        """Remove cached files that are no longer in the store."""
        before = time.time()
        stored = self._store.names("")
        for path in self._cached():
            with suppress(FileNotFoundError):
                # The listing may lack a file that was stored and fetched after it began, so such a
                # file stays.
                if path.stat().st_mtime < before and str(self.name_of(path)) not in stored:
                    self._drop(path)

    def _fetch(self, name: str, path: Path) -> None:
        start = time.monotonic()
        with self._lock:
            fetch = self._fetching.setdefault(name, _Fetch())
        with fetch.lock:
            if path.exists():
                return
            if fetch.failed is not None and fetch.failed > start:
                raise StoreFailed("the store of prepared records cannot be used now")
            try:
                with self._partial() as partial:
                    self._store.get(name, partial)
                    self._make_room(partial.stat().st_size)
                    # Otherwise a power cut could leave an incomplete file with a final name.
                    sync(partial)
                    self._place(partial, path)
            except StoreFailed:
                fetch.failed = time.monotonic()
                raise

    @contextmanager
    def _partial(self) -> Iterator[Path]:
        """A path for a new file, which the end of the block removes unless it was renamed."""
        make_folder(self._root)  # an operator may have removed the folder
        path = self._root / f".{token_hex(16)}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        """Evict files. Files of open versions are pinned and stay, also beyond the limit."""
        with self._lock:
            self._unpin_released()
            self._evict(self._limit - size)

    def _evict(self, limit: int) -> None:
        """Evict the least recently used unpinned files until ``limit`` bytes are left."""
        files = []
        for path in self._cached():
            with suppress(FileNotFoundError):
                files.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        excess = sum(size for _, size, _ in files) - limit
        for _, size, path in sorted(files):
            if excess <= 0:
                break
            if self.name_of(path) not in self._pins:
                self._drop(path)
                excess -= size

    def _unpin_released(self) -> None:
        """Unpin files whose mappings no longer exist, and set the time of their last use."""
        while self._releases:
            paths, at = self._releases.popleft()
            for path in paths:
                self._unpin(str(self.name_of(path)))
                with suppress(FileNotFoundError):
                    os.utime(path, (at, at))

    def _unpin(self, name: str) -> None:
        self._pins[name] -= 1
        if not self._pins[name]:
            del self._pins[name]

    def _cached(self) -> list[Path]:
        return [
            path
            for path in self._root.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        ]

    def _place(self, path: Path, final: Path) -> None:
        with self._lock:
            for folder in reversed(final.relative_to(self._root).parents):
                make_folder(self._root / folder)
            os.rename(path, final)
            sync(final.parent)

    def _drop(self, path: Path) -> None:
        with self._lock, suppress(OSError):
            path.unlink()
            for folder in path.parents:
                if folder == self._root:
                    return
                folder.rmdir()

    def _path(self, name: str) -> Path:
        return self._root / _checked(name)

    def _probe(self) -> None:
        while not self._closing.wait(ASK):
            with suppress(StoreFailed):
                # A store has the file ``OWNER``, which states the ledger that owns it. If it lacks
                # this file, it has lost its content, so it counts as failed.
                if self._store.holds(OWNER):
                    self._answered = time.monotonic()

    def _run(self) -> None:
        compared = time.monotonic()
        while True:
            # A later sweep removes the files that cannot be removed now.
            with suppress(Empty, StoreFailed, OSError):
                name = self._removals.get(timeout=LOOK)
                if name is None:
                    return
                self.remove(name)
            with suppress(StoreFailed, OSError):
                if time.monotonic() - compared >= LOOK:
                    compared = time.monotonic()
                    self.drop_gone()


class _Fetch:
    """The lock of one file's fetch, and the time of its last failure."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.failed: float | None = None


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("not the name of a shared file")
    return name
