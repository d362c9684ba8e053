"""Compares the files of an object store with the rows of the ledger that name them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.catalogue.retention import read_folders, read_references
from storage.database.database import Database
from storage.files.manifest import MANIFEST
from storage.records.retention import AGE, is_orphan


@dataclass(frozen=True)
class Comparison:
    """The differences between an object store and the ledger.

    ``lost`` describes the versions and node lists that the store lacks. ``unnamed`` is the number
    of files that no row names, or None while the ledger may lack rows.
    """

    lost: list[str]
    unnamed: int | None


def compare(database: Database, names: Callable[[], Mapping[str, float]]) -> Comparison:
    """Compare the files of an object store with the rows; services may run meanwhile.

    ``names`` lists the files, each with the time of its writing in seconds since 1970.
    Raises: StoreFailed.
    """
    with database.read() as connection:
        before = read_folders(connection)
    stored = names()
    with database.read() as connection:
        after = read_folders(connection)
        references = read_references(connection)
    oldest = time.time() - AGE
    # A folder counts as lost only if rows of the database name it both before and after the files
    # are listed. A version that was published or removed meanwhile is in only one of ``before`` and
    # ``after``.
    lost = [
        what
        for what in before
        if what in after and (after[what] is None or f"{after[what]}/{MANIFEST}" not in stored)
    ]
    orphans = [
        name
        for name, written in stored.items()
        if is_orphan(name, references, old=written < oldest)
    ]
    return Comparison(lost, None if references is None else len(orphans))
