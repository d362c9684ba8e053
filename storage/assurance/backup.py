"""Copies the ledger, the published heads and the records consistently while the service runs.

Danger: a restored copy must give no budget back. All its accounts are frozen, so no query can be
charged to them until an operator accepts the charges that the copy lacks. The file of published
heads records the moment of the freeze, so only later heads count as evidence of later charges.
DEST is the destination folder:

    DEST/privypurse.db   the ledger with all accounts frozen
    DEST/heads.log       the heads that were published before the copy
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
#: The most attempts at a backup. An attempt fails if the running service removes a version of a
#: dataset while it is being copied.
ATTEMPTS = 5


class DestinationTaken(StorageError):
    """The destination exists: a backup replaces nothing."""


def back_up(database: Database, data: Path | None, log: HeadsLog, destination: Path) -> None:
    """Copy ledger, heads and prepared records into the new folder ``destination`` of mode 0700.

    ``data`` is the data folder. It is None if the records are in an object store; an operator
    copies them with the tools of that store.
    Raises: DestinationTaken; UnusableDatabase for a ledger on PostgreSQL, which has its own tools.
    """
    if database.engine.dialect.name != "sqlite":
        raise UnusableDatabase("this ledger is on PostgreSQL: see docs/backup.md for pg_dump")
    if destination.exists():
        raise DestinationTaken("the destination exists already")
    for attempt in range(ATTEMPTS):
        # Until the copy is complete it has a hidden name, so it does not look like a backup.
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
    # The published heads are copied before the ledger. Heads that are published later could name
    # entries that the copy of the ledger lacks, as if it had lost them.
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
        # The folder of a node list exists only for a graph whose nodes have names.
        if name != NODES or (data / part / name).exists():
            make_folder(folder / part)
            shutil.copytree(data / part / name, folder / part / name)
    _seal(folder)
    log.mark([frozen_us])


def _copy_database(source: Path, target: Path) -> None:
    """Copy the state of a SQLite database at one moment, while other connections write to it."""
    target.touch(0o600)
    with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(target)) as writing:
        # All pages are copied in one step. If other connections write between two steps, SQLite
        # begins the copy again, so a copy in several steps might never end.
        reading.backup(writing, pages=-1)


def _freeze_all(connection: Connection) -> int:
    at_us = int(connection.execute(select(now_us())).scalar_one())
    freeze(connection, connection.execute(select(budget_account.c.id)).scalars().all(), at_us)
    return at_us


def _folders(connection: Connection) -> list[tuple[int, str]]:
    """The folders that rows of the copy name, as dataset id and folder name.

    They hold node lists, and the versions that queries may read.
    """
    d, v = dataset.c, dataset_version.c
    read = select(v.dataset_id, v.version).join_from(dataset_version, dataset, d.id == v.dataset_id)
    versions = connection.execute(
        read.where(v.removed_us.is_(None), (v.version == d.version) | IS_IN_USE)
    )
    ids = connection.execute(select(d.id)).scalars()
    return [(id, NODES) for id in ids] + [(id, str(version)) for id, version in versions]


def _seal(folder: Path) -> None:
    """Let only the owner read the files and folders, and sync them to the disk."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        sync(path)
