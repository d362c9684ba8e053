"""Reads and writes objects of an S3-compatible store, by the library s3fs.

Danger: access logs of the store may keep the names of objects. So the SHA-256 digest of an object
is in its metadata and never in its name. An object with another digest is refused. Errors state no
detail of a failure. Only a service whose setting ``PURSE_STORE`` names a store imports this module.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path

import s3fs

from storage.errors import StoreFailed
from storage.files.folders import create_file

#: Seconds until an attempt to connect fails, and until a connection without data fails.
CONNECT, SILENCE = 5, 20
ATTEMPTS = 2
DIGEST = "sha256"


class ObjectStore:
    """The objects below one prefix. Every failure raises StoreFailed; safe to use on any thread."""

    def __init__(
        self,
        address: str,
        *,
        endpoint: str | None = None,
        key: str | None = None,
        secret: str | None = None,
    ) -> None:
        """``address``: ``s3://bucket/prefix``. ``key`` defaults to that of other S3 tools."""
        self._prefix = address.removeprefix("s3://").strip("/")
        self._files = s3fs.S3FileSystem(
            key=key,
            secret=secret,
            endpoint_url=endpoint,
            use_listings_cache=False,
            skip_instance_cache=True,
            max_concurrency=1,  # one part at a time, because each part in transfer takes memory
            config_kwargs={
                "connect_timeout": CONNECT,
                "read_timeout": SILENCE,
                "retries": {"total_max_attempts": 1},
            },
        )
        self._files.retries = ATTEMPTS

    def put(self, path: Path, name: str) -> None:
        """Store a file atomically: no reader sees a part of it."""
        metadata = {DIGEST: _digest(path)}
        with _failures(needs_bucket=True):
            self._files.put_file(str(path), self._of(name), Metadata=metadata)

    def put_new(self, path: Path, name: str) -> None:
        """Store a small file unless the object exists. Of concurrent writers, one succeeds."""
        metadata = {DIGEST: _digest(path)}
        with suppress(FileExistsError), _failures(needs_bucket=True):
            self._files.put_file(str(path), self._of(name), mode="create", Metadata=metadata)

    def get(self, name: str, path: Path) -> None:
        """Write an object to the new file ``path``. Raises: FileNotFoundError."""
        create_file(path).close()
        with _failures():
            metadata = self._files.metadata(self._of(name))
            self._files.get_file(self._of(name), str(path))
        if metadata.get(DIGEST) != _digest(path):
            raise StoreFailed("an object in the store is not the one that was stored")

    def holds(self, name: str) -> bool:
        with suppress(FileNotFoundError), _failures():
            self._files.metadata(self._of(name))
            return True
        return False

    def names(self, folder: str) -> dict[str, float]:
        """All objects below a folder ('' for everything), each with the time of its writing.

        Leaves out the objects by which other tools mark an empty folder. It also leaves out
        entries without a time: s3fs returns a folder if an object appears during the listing.
        """
        below = self._of(folder) if folder else self._prefix
        with _failures(needs_bucket=True):
            objects = self._files.find(below, detail=True)
        start = len(self._prefix) + 1
        return {
            path[start:]: entry["LastModified"].timestamp()
            for path, entry in objects.items()
            if "LastModified" in entry and not path.endswith("/")
        }

    def remove(self, name: str) -> None:
        with _failures():
            self._files.rm_file(self._of(name))

    def _of(self, name: str) -> str:
        return f"{self._prefix}/{name}"


@contextmanager
def _failures(needs_bucket: bool = False) -> Iterator[None]:
    """Makes every error a StoreFailed, except FileNotFoundError for an absent object."""
    try:
        yield
    except FileNotFoundError:
        if needs_bucket:
            raise StoreFailed("the store of prepared records has no such bucket") from None
        raise
    except FileExistsError:
        raise  # only ``put_new`` causes this error, and ``put_new`` ignores it
    except Exception as error:
        # Danger: errors of the library quote addresses and names. So only their class is reported.
        kind = type(error).__name__
        text = f"the store of prepared records cannot be used now ({kind})"
        raise StoreFailed(text) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
