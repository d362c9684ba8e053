"""A store elsewhere through a folder of this machine: fetched once, checked, mapped from there.

    DIR/store/<name>     what was fetched; the least recently used goes when there is too much
    DIR/store/.<random>  on its way

The folder belongs to one process. What has gone from the store goes from here within a minute. What
is in use stays: of a file that is mapped only the name would go, and no room would come of it.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from threading import Event, Lock, RLock, Thread
from weakref import WeakValueDictionary, finalize

from storage.errors import StoreFailed
from storage.files.folders import create_file, make_folder, sync_file, sync_folder
from storage.files.shared import Content
from storage.records.retention import OWNER
from storage.s3.objects import ObjectStore

#: Seconds between two looks for what has gone from the store.
LOOK = 60.0
#: Seconds that the end of a process waits for removals.
CLOSING = 5.0
#: Seconds between two questions whether the store answers, and until none has been answered.
ASK, PATIENCE = 5.0, 15.0
NAME = re.compile(r"[0-9a-z][0-9a-z.-]*(/[0-9a-z][0-9a-z.-]*){0,3}")


class CachedStore:
    """Files of a store by name, of which at most ``limit`` bytes are kept on this disk."""

    def __init__(self, store: ObjectStore, root: Path, limit: int) -> None:
        self._store, self._root, self._limit = store, root.resolve(), limit
        self._folder = self._root / "store"
        make_folder(self._folder)
        for left in self._folder.glob(".*"):
            left.unlink()
        self._held: Counter[str] = Counter()
        #: What was given back, and when: its holders are collected wherever, and wait for nobody.
        self._given_back: deque[tuple[list[Path], float]] = deque()
        #: Asked for room: closes what was used least recently of what is open, if it can.
        self.close_one: Callable[[], bool] = lambda: False
        self._lock = RLock()
        #: One at a time fetches a file; when it fails, it has failed for those who waited too.
        self._fetching: WeakValueDictionary[str, _Fetch] = WeakValueDictionary()
        self._leaving: SimpleQueue[str | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._closing = Event()
        self._answered: float | None = None

    def start(self) -> None:
        """Drop what has gone from the store, now and then, in a thread of its own."""
        self._thread = Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def watch(self) -> None:
        """Ask every few seconds whether the store answers, in a thread that nobody waits for."""
        self._answered = time.monotonic()
        Thread(target=self._ask, name="store-asking", daemon=True).start()

    def answers(self) -> bool:
        """Whether the store has answered lately; waits for nothing. For who ``watch``es it."""
        return self._answered is not None and time.monotonic() - self._answered < PATIENCE

    @property
    def closing(self) -> bool:
        """Whether the process ends, which waits for nobody."""
        return self._closing.is_set()

    def close(self) -> None:
        """Remove what was to be removed soon, and end."""
        self._closing.set()
        if self._thread is not None:
            self._leaving.put(None)
            # A store that does not answer must not hold the process: what is left is swept later.
            self._thread.join(timeout=CLOSING)

    def write(self, name: str, content: Content, *, durable: bool = False) -> None:  # noqa: ARG002
        partial = self._partial()
        try:
            with create_file(partial) as out:
                content(out)
            self._store.put(partial, _checked(name))
        finally:
            partial.unlink(missing_ok=True)

    def offer(self, path: Path, name: str) -> str:
        self.put(path, name)
        return name

    def put(self, path: Path, name: str) -> None:
        """Store a file of this machine whole, under a name."""
        self._store.put(path, _checked(name))

    def adopt(self, path: Path, name: str) -> None:
        """Have a file that was just stored under a name, instead of fetching it."""
        self._make_room(path.stat().st_size)
        partial = self._partial()
        os.link(path, partial)
        self._place(partial, self._path(name))

    def read(self, name: str) -> bytes:
        partial = self._new()
        try:
            self._store.get(_checked(name), partial)
            return partial.read_bytes()
        finally:
            partial.unlink()

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        path = self._path(name)
        with self._lock:
            self._held[name] += 1
        try:
            if not path.exists():
                self._fetch(name, path)
            os.utime(path)
            yield path
        finally:
            with self._lock:
                self._let_go(name)

    def hold(self, path: Path, mapped: object) -> None:
        with self._lock:
            self._take_back()
            held = sorted(path.iterdir()) if path.is_dir() else [path]
            self._held.update(str(self.name_of(one)) for one in held)
        # Collected on any thread, with any lock held: it is only noted, and when.
        finalize(mapped, lambda: self._given_back.append((held, time.time()))).atexit = False

    def holds(self, name: str) -> bool:
        return self._store.holds(_checked(name))

    def name_of(self, path: Path) -> str | None:
        path = path.resolve()
        return str(path.relative_to(self._folder)) if path.is_relative_to(self._folder) else None

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
        # Collected arrays say this on any thread, the library's own too, where nothing may wait.
        self._leaving.put(name)

    def drop_gone(self) -> None:
        """Drop what is no longer in the store."""
        before = time.time()
        stored = self._store.names("")
        for path in self._cached():
            with suppress(FileNotFoundError):
                # What was fetched meanwhile was there after the list was made.
                if path.stat().st_mtime < before and str(self.name_of(path)) not in stored:
                    self._drop(path)

    def _fetch(self, name: str, path: Path) -> None:
        asked = time.monotonic()
        with self._lock:
            fetch = self._fetching.setdefault(name, _Fetch())
        with fetch.lock:
            if path.exists():
                return
            if fetch.failed is not None and fetch.failed > asked:
                raise StoreFailed("the store of prepared records cannot be used now")
            partial = self._new()
            try:
                self._store.get(name, partial)
                self._make_room(partial.stat().st_size)
                sync_file(partial)  # under its name it is whole, also after a power cut
                self._place(partial, path)
            except StoreFailed:
                fetch.failed = time.monotonic()
                raise
            finally:
                partial.unlink(missing_ok=True)

    def _partial(self) -> Path:
        make_folder(self._folder)  # Whoever needs the room may empty it.
        return self._folder / f".{token_hex(16)}"

    def _new(self) -> Path:
        path = self._partial()
        create_file(path).close()
        return path

    def _make_room(self, size: int) -> None:
        with self._lock:
            while True:
                self._take_back()
                excess = self._dropped_until(self._limit - size)
                # What is open was used later than what is not. Its files can go once it is closed.
                if excess <= 0 or not self.close_one():
                    return

    def _dropped_until(self, limit: int) -> int:
        """Drop what was used least recently and is not in use; the bytes above ``limit`` still."""
        found = []
        for path in self._cached():
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        excess = sum(taken for _, taken, _ in found) - limit
        for _, taken, path in sorted(found):
            if excess <= 0:
                break
            if self.name_of(path) not in self._held:
                self._drop(path)
                excess -= taken
        return excess

    def _take_back(self) -> None:
        """Let go of what nobody holds any more: it was in use until then."""
        while self._given_back:
            paths, at = self._given_back.popleft()
            for path in paths:
                self._let_go(str(self.name_of(path)))
                with suppress(FileNotFoundError):
                    os.utime(path, (at, at))

    def _let_go(self, name: str) -> None:
        self._held[name] -= 1
        if not self._held[name]:
            del self._held[name]

    def _cached(self) -> list[Path]:
        return [
            path
            for path in self._folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        ]

    def _place(self, path: Path, final: Path) -> None:
        with self._lock:
            for folder in reversed(final.relative_to(self._folder).parents):
                make_folder(self._folder / folder)
            os.rename(path, final)
            sync_folder(final.parent)

    def _drop(self, path: Path) -> None:
        with self._lock, suppress(OSError):
            path.unlink()
            for folder in path.parents:
                if folder == self._folder:
                    return
                folder.rmdir()

    def _path(self, name: str) -> Path:
        return self._folder / _checked(name)

    def _ask(self) -> None:
        while not self._closing.wait(ASK):
            with suppress(StoreFailed):
                # A store that has lost whose it is has lost the rest too.
                if self._store.holds(OWNER):
                    self._answered = time.monotonic()

    def _run(self) -> None:
        looked, closing = time.monotonic(), False
        while not closing:
            with suppress(Empty):
                name = self._leaving.get(timeout=LOOK)
                # What cannot be removed now is swept later; what has gone, found the next time.
                with suppress(StoreFailed, OSError):
                    if name is None:
                        closing = True
                    else:
                        self.remove(name)
            if not closing and time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                with suppress(StoreFailed, OSError):
                    self.drop_gone()


class _Fetch:
    """Who fetches one file, and when that failed last."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.failed: float | None = None


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("not the name of a shared file")
    return name
