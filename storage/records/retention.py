"""Which files of a store nothing refers to any more.

A file of an upload is named by a row before the upload ends, or never: its fate needs no clock.
Other files are judged by age as well, because a younger one may belong to a process at work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from storage.records.tickets import OF_UPLOAD

#: Seconds after which a file that no row names counts as left behind.
AGE = 86_400.0
#: The name of the ledger that owns the store; present as long as the store has an owner.
OWNER = "ledger"
#: A folder below ``arrays/``: what one upload was prepared to.
ARRAYS = re.compile(r"([0-9]{1,18})-[0-9a-f]{32}")


@dataclass(frozen=True)
class References:
    """What the rows of a ledger still refer to.

    ``versions``: folders of versions, until these are removed. ``nodes``: folders of node lists,
    never removed. ``uploads``: uploads under way, which may have stored what no row names yet.
    """

    versions: frozenset[str]
    nodes: frozenset[str]
    uploads: frozenset[int]


def is_orphan(name: str, references: References | None, *, old: bool) -> bool:
    """True if nothing will read the file any more.

    ``references`` is None while the ledger may have forgotten some: then almost nothing is an
    orphan. ``old``: the file is older than ``AGE``.
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
