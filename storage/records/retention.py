"""What nobody will ask a store for any more, and what it has lost: its list beside the database.

A file of an upload is named by a row before the upload is over, or never; so whether it is left
needs no clock. Of other files age must do: younger ones may be of a process at work.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.catalogue import retention
from storage.catalogue.retention import Kept
from storage.database.database import Database
from storage.files.arrays import MANIFEST
from storage.records.tickets import OF_UPLOAD

#: Seconds after which what no row can tell of is taken for left behind.
AGE = 86_400.0
#: Says whose the store is; there as long as the store is anybody's.
OWNER = "ledger"
#: Below ``arrays/``: what one upload was prepared to.
ARRAYS = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")


@dataclass(frozen=True)
class Compared:
    """``lost``: what queries read and the store has no more, in words; ``unnamed``: how many files
    are of nothing in the database, None while that may have forgotten some."""

    lost: list[str]
    unnamed: int | None


def is_left(name: str, known: Kept | None, *, old: bool) -> bool:
    """Whether nobody will ask for a file any more; not known of most while ``known`` is None."""
    top, _, rest = name.partition("/")
    folder = rest.partition("/")[0]
    if top == "cluster":
        return old
    if known is None or name == OWNER:
        return False
    if top == "nodes":
        return old and folder not in known.nodes
    if top == "arrays" and folder in known.versions:
        return False
    upload = ARRAYS.fullmatch(folder) if top == "arrays" else OF_UPLOAD.fullmatch(name)
    return old if upload is None else int(upload[1]) not in known.uploads


def compare(database: Database, names: Callable[[], Mapping[str, float]]) -> Compared:
    """The list of a store, ``names``, beside the rows; services may go on. Raises: StoreFailed."""
    before = _read(database)
    stored = names()
    after = _read(database)
    with database.read() as connection:
        known = retention.kept(connection)
    oldest = time.time() - AGE
    # What was published or removed meanwhile is in one of both alone.
    lost = [
        what
        for what in before
        if what in after and (after[what] is None or f"{after[what]}/{MANIFEST}" not in stored)
    ]
    left = [name for name, written in stored.items() if is_left(name, known, old=written < oldest)]
    return Compared(lost, None if known is None else len(left))


def _read(database: Database) -> dict[str, str | None]:
    """The folder of everything that queries read, by what it is; None for what has none."""
    with database.read() as connection:
        versions, graphs = retention.read_versions(connection), retention.named_graphs(connection)
    found = {f"version {number} of {name}": ("arrays", folder) for name, number, folder in versions}
    found |= {f"the node list of {name}": ("nodes", folder) for name, folder in graphs}
    return {what: folder and f"{top}/{folder}" for what, (top, folder) in found.items()}
