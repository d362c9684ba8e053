"""Copies ledger, heads and records consistently while the service goes on.

Danger: a restored copy must give no budget back. All its accounts are frozen, so it takes no charge
until an operator accepts the charges that it lacks. The file of published heads records the moment
of the freeze, so that only heads from after the backup count as evidence of later charges.

    DEST/privypurse.db   the ledger, frozen      DEST/heads.log   heads published until then
    DEST/datasets/…      node lists, and the versions that queries of the copy may read
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex

from sqlalchemy import Connection, select

from storage.assurance.heads import HeadsLog
from storage.catalogue.versions import IS_IN_USE
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.tables import budget_account, dataset, dataset_version
from storage.errors import StorageError, UnusableDatabase
from storage.files.folders import make_folder, sync
from storage.ledger.freezing import freeze

DATABASE = "privypurse.db"
HEADS = "heads.log"
NODES = "nodes"
#: A version may be replaced while it is copied; then everything is copied once more.
ATTEMPTS = 5


class DestinationTaken(StorageError):
    """The destination exists: a backup replaces nothing."""


def back_up(database: Database, data: Path | None, log: HeadsLog, destination: Path) -> None:
    """Copy ledger, heads and prepared records into a new folder ``destination``, 0700.

    ``data`` None: the records are in a store and are copied with the tools of the store.

    Raises: DestinationTaken; UnusableDatabase for a ledger on PostgreSQL, which has its own tools.
    """
    if database.engine.dialect.name != "sqlite":
        raise UnusableDatabase("this ledger is on PostgreSQL: see docs/backup.md for pg_dump")
    if destination.exists():
        raise DestinationTaken("the destination exists already")
    for attempt in range(ATTEMPTS):
        # Another name until the copy is whole: an interrupted backup must not look like one.
        unfinished = destination.with_name(f".{destination.name}.{token_hex(8)}")
        make_folder(unfinished)
        try:
            _copy(database, data, log, unfinished)
            unfinished.rename(destination)
            sync(destination.parent)
            return
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _copy(database: Database, data: Path | None, log: HeadsLog, folder: Path) -> None:
    source = database.engine.url.database
    assert source is not None
    # The heads first: later heads would show that the copy went backwards.
    if log.path.exists():
        shutil.copyfile(log.path, folder / HEADS)
        (folder / HEADS).chmod(0o600)
    _copy_database(Path(source), folder / DATABASE)
    copy = Database.open(f"sqlite:///{folder / DATABASE}", folder)
    try:
        frozen_us = copy.write(_freeze_all)
        with copy.read() as connection:
            folders = [] if data is None else _folders(connection)
    finally:
        copy.close()
    (folder / "migration.lock").unlink()
    make_folder(folder / "datasets")
    for id, name in folders:
        assert data is not None
        part = Path("datasets") / str(id)
        # A folder of node lists exists only if nodes have names.
        if name != NODES or (data / part / name).exists():
            make_folder(folder / part)
            shutil.copytree(data / part / name, folder / part / name)
    _seal(folder)
    log.mark([frozen_us])


def _copy_database(source: Path, target: Path) -> None:
    """Copies one moment of a database in use, by the backup of SQLite."""
    target.touch(0o600)
    with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(target)) as writing:
        # All pages in one step: with writers between steps, the backup would restart endlessly.
        reading.backup(writing, pages=-1)


def _freeze_all(connection: Connection) -> int:
    at_us = int(connection.execute(select(now_us())).scalar_one())
    freeze(connection, connection.execute(select(budget_account.c.id)).scalars().all(), at_us)
    return at_us


def _folders(connection: Connection) -> list[tuple[int, str]]:
    """The folders that the copy refers to: node lists, and versions that queries may read."""
    d, v = dataset.c, dataset_version.c
    read = select(v.dataset_id, v.version).join_from(dataset_version, dataset, d.id == v.dataset_id)
    versions = connection.execute(
        read.where(v.removed_us.is_(None), (v.version == d.version) | IS_IN_USE)
    )
    ids = connection.execute(select(d.id)).scalars()
    return [(id, NODES) for id in ids] + [(id, str(version)) for id, version in versions]


def _seal(folder: Path) -> None:
    """Restrict the modes to the owner, and sync all files and folders."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        sync(path)
