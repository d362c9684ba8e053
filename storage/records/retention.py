"""Decides which files of an object store are orphans, which a sweep removes.

A file of an upload is an orphan if the upload has ended and no row names the file. Any other file
that no row names must also be a day old, because a younger one may belong to a running process.
"""

import re
from dataclasses import dataclass

from storage.records.tickets import OF_UPLOAD

#: The age in seconds from which a file that no row names is an orphan, unless it belongs to an
#: upload. A younger one may belong to a running process.
AGE = 86_400.0
#: The name of the file in an object store that states which ledger owns the store.
OWNER = "ledger"
#: The name of a folder below ``arrays/`` with the prepared version of one upload. The name consists
#: of the id of the upload and of random digits.
ARRAYS = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")


@dataclass(frozen=True)
class References:
    """The files that rows of a ledger refer to.

    ``versions``: folders of versions that are not removed. ``nodes``: folders of node lists, which
    are never removed. ``uploads``: running uploads, whose files may have no row that names them.
    """

    versions: frozenset[str]
    nodes: frozenset[str]
    uploads: frozenset[int]


def is_orphan(name: str, references: References | None, *, old: bool) -> bool:
    """True if no process will read the file ``name``.

    ``references`` is None while the ledger may have lost rows; then only old files below
    ``cluster/`` are orphans. ``old``: True if the file is older than ``AGE``.
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
