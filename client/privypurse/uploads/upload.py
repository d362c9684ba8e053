"""Streams a file of records from disk and waits until the records can be queried."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privypurse.accounts import Dataset
from privypurse.connection import Connection, part
from privypurse.problems import PurseError
from privypurse.progress import Progress

CHUNK = 1 << 18
#: Seconds between two reads of the state of a version that is being prepared.
POLL = 0.5
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".txt": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".graphml": "application/graphml+xml",
    ".json": "application/json",
}


class RecordsRefused(PurseError):
    """The uploaded records do not match their description; ``upload`` says where."""

    def __init__(self, name: str, upload: dict[str, Any]) -> None:
        super().__init__(f"the records of {name} were refused: {upload.get('errors', upload)}")
        self.upload = upload


def send_file(
    connection: Connection, path: str, file: Path, media_type: str | None, progress: Progress
) -> Any:
    """PUT a file and return the JSON of the reply. A ``.gz`` file is sent compressed."""
    content_type, is_compressed = media_type_of(file, media_type)
    total = os.stat(file).st_size
    headers = {"Content-Type": content_type, "Content-Length": str(total)}
    if is_compressed:
        headers["Content-Encoding"] = "gzip"

    class Chunks:
        """The bytes of the file in pieces; each iteration reads the file from its start."""

        def __iter__(self) -> Iterator[bytes]:
            sent = 0
            with file.open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
                    sent += len(chunk)
                    progress.bytes(sent, total)
            progress.note("sent; being checked")

    # This request is never sent again. After a lost connection the file may already be a new
    # version.
    return connection.json("PUT", path, content=Chunks(), headers=headers, repeatable=False)


def until_ready(connection: Connection, name: str, progress: Progress) -> Dataset:
    """Returns the dataset when its new version can be queried. Raises: RecordsRefused."""
    started = time.monotonic()
    while True:
        dataset = Dataset.of(connection.json("GET", f"/v1/datasets/{part(name)}"))
        if dataset.status == "refused":
            raise RecordsRefused(name, dataset.description["upload"])
        if dataset.status != "preparing":
            return dataset
        progress.note(f"being prepared for {time.monotonic() - started:.0f} s")
        time.sleep(POLL)


def media_type_of(file: Path, media_type: str | None = None) -> tuple[str, bool]:
    """The media type of a file, which follows from its name unless given; True for gzip.

    Raises: ValueError if the name implies none.
    """
    is_compressed = file.suffix == ".gz"
    kind = file.with_suffix("").suffix if is_compressed else file.suffix
    if media_type is None and kind not in MEDIA_TYPES:
        raise ValueError(f"{file.name}: add the media type, which the name does not imply")
    return media_type or MEDIA_TYPES[kind], is_compressed
