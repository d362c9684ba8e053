"""Objects of an S3-compatible store, by fsspec: imported only where ``PURSE_STORE`` names one.

Every object carries the SHA-256 of its bytes beside it, and never in its name, which access logs
may keep: what comes back is what was written, or it is refused. Of what goes wrong nothing is said
but that it did.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import TypeVar

import s3fs

from storage.errors import StoreFailed

T = TypeVar("T")

#: Seconds until an address that does not answer, or a connection that is silent, is given up; and
#: how often that is tried.
CONNECT, SILENCE = 5, 20
ATTEMPTS = 2
DIGEST = "sha256"


class ObjectStore:
    """The objects below one prefix. Whatever fails raises StoreFailed; safe from any thread."""

    def __init__(
        self,
        address: str,
        *,
        endpoint: str | None = None,
        key: str | None = None,
        secret: str | None = None,
    ) -> None:
        """``address``: ``s3://bucket/prefix``. Without a key one is found as its tools do."""
        self._prefix = address.removeprefix("s3://").strip("/")
        self._files = s3fs.S3FileSystem(
            key=key,
            secret=secret,
            endpoint_url=endpoint,
            use_listings_cache=False,
            skip_instance_cache=True,
            max_concurrency=1,  # parts under way are in memory
            config_kwargs={
                "connect_timeout": CONNECT,
                "read_timeout": SILENCE,
                "retries": {"total_max_attempts": 1},
            },
        )
        self._files.retries = ATTEMPTS

    def put(self, path: Path, name: str) -> None:
        """Store a file whole; nobody sees a part of it."""
        metadata = {DIGEST: _digest(path)}
        try:
            self._try(lambda: self._files.put_file(str(path), self._of(name), Metadata=metadata))
        except FileNotFoundError:
            raise StoreFailed("the store of prepared records has no such bucket") from None

    def get(self, name: str, path: Path) -> None:
        """Write an object to a file. Raises: FileNotFoundError when there is none."""
        metadata = self._try(lambda: self._files.metadata(self._of(name)))
        self._try(lambda: self._files.get_file(self._of(name), str(path)))
        if metadata.get(DIGEST) != _digest(path):
            raise StoreFailed("what the store holds is not what was stored")

    def holds(self, name: str) -> bool:
        try:
            self._try(lambda: self._files.metadata(self._of(name)))
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> dict[str, float]:
        """All objects below a folder, '' for everything, and when each was written.

        Not those by which other tools remember an empty folder.
        """
        below = self._of(folder) if folder else self._prefix
        try:
            found = self._try(lambda: self._files.find(below, detail=True))
        except FileNotFoundError:
            raise StoreFailed("the store of prepared records has no such bucket") from None
        start = len(self._prefix) + 1
        return {
            path[start:]: _seconds(entry["LastModified"])
            for path, entry in found.items()
            if not path.endswith("/")
        }

    def remove(self, name: str) -> None:
        self._try(lambda: self._files.rm_file(self._of(name)))

    def _of(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def _try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except Exception as error:
            # The library's errors quote addresses and names; their class is enough.
            kind = type(error).__name__
            text = f"the store of prepared records cannot be used now ({kind})"
            raise StoreFailed(text) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
