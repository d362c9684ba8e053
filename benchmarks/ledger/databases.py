"""New databases of either kind: files of SQLite, or a PostgreSQL server of the bench's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.servers import Server, binaries

KINDS = ("sqlite", "postgresql")


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that a server which runs as another user may enter. TMPDIR chooses the disk."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@contextmanager
def postgresql(within: Path) -> Iterator[Server]:
    """A server that waits for the disk at every commit, as one in service does."""
    programs = binaries()
    if programs is None:
        raise RuntimeError("needs PostgreSQL: apt-get install postgresql")
    with Server(programs, within / "server") as server:
        yield server


@contextmanager
def databases(kind: str, within: Path) -> Iterator[Callable[[str], str]]:
    """A function from a name to the address of a new, empty database."""
    if kind == "sqlite":
        yield lambda name: f"sqlite:///{within}/{name}.db"
        return
    with postgresql(within) as server:
        yield server.new_database
