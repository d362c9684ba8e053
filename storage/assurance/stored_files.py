"""Compares the files of a store with the rows of the ledger: lost files and unnamed files."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.catalogue.retention import read_folders, read_references
from storage.database.database import Database
from storage.files.arrays import MANIFEST
from storage.records.retention import AGE, is_orphan


@dataclass(frozen=True)
class Comparison:
    """``lost``: descriptions of versions and node lists that the store lacks.

    ``unnamed``: the number of files that no row refers to; None while the ledger may lack rows.
    """

    lost: list[str]
    unnamed: int | None


def compare(database: Database, names: Callable[[], Mapping[str, float]]) -> Comparison:
    """Compares the listing of a store, ``names``, with the rows. Services may run meanwhile.

    Raises: StoreFailed.
    """
    with database.read() as connection:
        before = read_folders(connection)
    stored = names()
    with database.read() as connection:
        after = read_folders(connection)
        references = read_references(connection)
    oldest = time.time() - AGE
    # A version that is published or removed meanwhile is in one of the two only.
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
