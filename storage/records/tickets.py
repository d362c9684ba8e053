"""Tickets of uploads, from which another process resumes an upload after a crash.

    incoming/upload-<id>    the ticket of upload <id>, in the folder of the file with its records
    incoming/records-<id>   the records, if they are copied to an object store

The lease of an upload is in the database (``storage.catalogue.versions``). Only the process that
has the lease reads the ticket.
"""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from storage.files.shared import Shared

NAME = re.compile(r"incoming/upload-([0-9]{1,18})")
#: The pattern of the names of files that belong to one upload. The digits are the id of the upload.
OF_UPLOAD = re.compile(r"incoming/(?:upload|records)-([0-9]{1,18})")


@dataclass(frozen=True)
class Ticket:
    """The facts that a process needs to resume an upload.

    ``file``: the file with the records, in the folder of the ticket. ``attempts``: the number of
    processes that have tried to prepare the upload. ``actor``: the user who sent it.
    """

    dataset: str
    actor: str
    file: str
    media_type: str
    gzipped: bool
    attempts: int = 1

    def again(self) -> Ticket:
        return replace(self, attempts=self.attempts + 1)


class Tickets:
    """The tickets of all uploads. All processes of the service share them."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def leave(self, upload: int, ticket: Ticket) -> None:
        """Write or replace the ticket of an upload. A reader never sees a part of a ticket."""
        content = json.dumps(asdict(ticket)).encode()
        self._shared.write(_name(upload), lambda out: out.write(content), durable=True)

    def find(self, upload: int) -> Ticket | None:
        """The ticket of an upload; None if it has none, or one of an incompatible version."""
        try:
            return Ticket(**json.loads(self._shared.read(_name(upload))))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def uploads(self) -> list[int]:
        """The uploads that have a ticket."""
        matches = map(NAME.fullmatch, self._shared.names("incoming"))
        return sorted(int(match[1]) for match in matches if match)

    def offer(self, upload: int, ticket: Ticket, path: Path) -> Ticket:
        """Share the file ``path`` with the records. Returns the ticket with its shared name."""
        return replace(ticket, file=Path(self._shared.offer(path, _records_of(upload))).name)

    def records(self, ticket: Ticket) -> AbstractContextManager[Path]:
        """The file with the records, valid within the block. Raises: FileNotFoundError."""
        return self._shared.file(_file_of(ticket))

    def drop(self, upload: int, ticket: Ticket | None) -> None:
        """Remove the ticket and the records of an upload that has ended.

        Removes every file that the upload may have: a failed write may leave one in a store.
        """
        records = {_records_of(upload)} | ({_file_of(ticket)} if ticket else set())
        for name in (*sorted(records), _name(upload)):
            self._shared.remove(name)


def _name(upload: int) -> str:
    return f"incoming/upload-{int(upload)}"


def _records_of(upload: int) -> str:
    return f"incoming/records-{int(upload)}"


def _file_of(ticket: Ticket) -> str:
    return f"incoming/{Path(ticket.file).name}"
