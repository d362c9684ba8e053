"""What another process needs to go on with an upload whose own process died.

    incoming/upload-<id>    the ticket, beside the file with the records (``storage.files.shared``)
    incoming/records-<id>   the records, where they have to be sent to a store

The database holds whose upload it is (``storage.catalogue.versions``): only the process that has
won the upload's lease reads its ticket.
"""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from storage.files.shared import Shared

NAME = re.compile(r"incoming/upload-([0-9]{1,18})")
#: Whatever belongs to one upload alone, by its name.
OF_UPLOAD = re.compile(r"incoming/(?:upload|records)-([0-9]{1,18})")


@dataclass(frozen=True)
class Ticket:
    """One upload: ``file`` is a name beside it, ``attempts`` counts the processes."""

    dataset: str
    actor: str
    file: str
    media_type: str
    gzipped: bool
    attempts: int = 1

    def again(self) -> Ticket:
        return replace(self, attempts=self.attempts + 1)


class Tickets:
    """The tickets of all uploads, which processes share."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def leave(self, upload: int, ticket: Ticket) -> None:
        """Write or replace the ticket of an upload, whole or not at all."""
        content = json.dumps(asdict(ticket)).encode()
        self._shared.write(_name(upload), lambda out: out.write(content), durable=True)

    def find(self, upload: int) -> Ticket | None:
        """The ticket of an upload; None when there is none, or none that this version can read."""
        try:
            return Ticket(**json.loads(self._shared.read(_name(upload))))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def uploads(self) -> list[int]:
        """Every upload that has a ticket."""
        found = (NAME.fullmatch(name) for name in self._shared.names("incoming"))
        return sorted(int(match[1]) for match in found if match)

    def offer(self, upload: int, ticket: Ticket, path: Path) -> Ticket:
        """Let whoever has the ticket read the records in a file; what is then to be left."""
        return replace(ticket, file=Path(self._shared.offer(path, _records_of(upload))).name)

    def records(self, ticket: Ticket) -> AbstractContextManager[Path]:
        """The file with the records, for as long as the block; FileNotFoundError."""
        return self._shared.file(_file_of(ticket))

    def drop(self, upload: int, ticket: Ticket | None) -> None:
        """The upload is over: nobody needs its ticket any more, or its records.

        Whatever of it was left: a store may have what it said it could not take.
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
