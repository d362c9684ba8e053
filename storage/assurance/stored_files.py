"""Compares the files of a store with the rows of the ledger: what is lost, what nothing names."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.catalogue.retention import named_graphs, read_references, read_versions
from storage.database.database import Database
from storage.files.arrays import MANIFEST
from storage.records.retention import AGE, is_orphan


@dataclass(frozen=True)
class Comparison:
    """``lost``: descriptions of what queries read and the store lacks. ``unnamed``: the number of
    files that no row refers to; None while the ledger may have forgotten some."""

    lost: list[str]
    unnamed: int | None


def compare(database: Database, names: Callable[[], Mapping[str, float]]) -> Comparison:
    """Compares the list of a store, ``names``, with the rows; services may go on.

    Raises: StoreFailed.
    """
    before = _folders(database)
    stored = names()
    after = _folders(database)
    with database.read() as connection:
        references = read_references(connection)
    oldest = time.time() - AGE
    # What is published or removed during the comparison stands in one of both alone.
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


def _folders(database: Database) -> dict[str, str | None]:
    """The folder of everything that queries read, by description; None for what has none."""
    with database.read() as connection:
        versions, graphs = read_versions(connection), named_graphs(connection)
    folders = {
        f"version {number} of {name}": ("arrays", folder) for name, number, folder in versions
    }
    folders |= {f"the node list of {name}": ("nodes", folder) for name, folder in graphs}
    return {what: folder and f"{top}/{folder}" for what, (top, folder) in folders.items()}
