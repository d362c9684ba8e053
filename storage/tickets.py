"""What another process needs to go on with an upload whose own process died.

    DIR/incoming/upload-<id>   the ticket, beside the file with the records

Whose upload it is the database says (``storage.versions``): a ticket is looked at only by the one
process that has won the upload's lease.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex

from storage.folders import create_file

NAME = re.compile(r"upload-([0-9]{1,18})")


@dataclass(frozen=True)
class Ticket:
    """One upload: ``file`` is a name in the same folder, ``attempts`` counts the processes."""

    dataset: str
    actor: str
    file: str
    media_type: str
    gzipped: bool
    attempts: int = 1

    def again(self) -> Ticket:
        return replace(self, attempts=self.attempts + 1)


class Tickets:
    """The tickets in one folder, which processes may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def leave(self, upload: int, ticket: Ticket) -> None:
        """Write or replace the ticket of an upload, whole or not at all."""
        partial = self._folder / token_hex(16)
        with create_file(partial) as out:
            out.write(json.dumps(asdict(ticket)).encode())
        os.rename(partial, self._path(upload))

    def find(self, upload: int) -> Ticket | None:
        """The ticket of an upload; None when there is none, or none that this version can read."""
        try:
            return Ticket(**json.loads(self._path(upload).read_bytes()))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def uploads(self) -> list[int]:
        """Every upload that has a ticket."""
        found = (NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def file_of(self, ticket: Ticket) -> Path:
        return self._folder / Path(ticket.file).name

    def drop(self, upload: int) -> None:
        self._path(upload).unlink(missing_ok=True)

    def _path(self, upload: int) -> Path:
        return self._folder / f"upload-{int(upload)}"
