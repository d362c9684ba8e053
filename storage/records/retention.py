"""Decides which files of a store are orphans, so that a sweep may remove them.

A row names the file of an upload before the upload ends, or never, so no clock decides on it.
The age of other files counts as well: a younger one may belong to a running process.
"""

import re
from dataclasses import dataclass

from storage.records.tickets import OF_UPLOAD

#: Seconds after which a file that no row names is an orphan.
AGE = 86_400.0
#: The name of the ledger that owns the store; present as long as the store has an owner.
OWNER = "ledger"
#: A folder below ``arrays/``: the prepared version of one upload.
ARRAYS = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")


@dataclass(frozen=True)
class References:
    """The files that rows of a ledger refer to.

    ``versions``: folders of versions that are not removed. ``nodes``: folders of node lists, which
    are never removed. ``uploads``: running uploads, whose files no row may name yet.
    """

    versions: frozenset[str]
    nodes: frozenset[str]
    uploads: frozenset[int]


def is_orphan(name: str, references: References | None, *, old: bool) -> bool:
    """True if no process will read the file.

    ``references`` is None while the ledger may have lost rows; then only old files of jobs are
    orphans. ``old``: the file is older than ``AGE``.
    """
    top, _, rest = name.partition("/")
    folder = rest.partition("/")[0]
    if top == "cluster":
        return old
    if references is None or name == OWNER:
        return False
    if top == "nodes":
        return old and folder not in references.nodes
    if top == "arrays" and folder in references.versions:
        return False
    upload = ARRAYS.fullmatch(folder) if top == "arrays" else OF_UPLOAD.fullmatch(name)
    return old if upload is None else int(upload[1]) not in references.uploads
