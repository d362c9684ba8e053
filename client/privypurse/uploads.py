"""Sends a file of records from disk, never whole in memory, and waits until it can be queried."""

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
#: Seconds between two looks at a version that is being prepared.
POLL = 0.5
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".txt": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".graphml": "application/graphml+xml",
    ".json": "application/json",
}


class RecordsRefused(PurseError):
    """The records arrived and do not fit their description; ``upload`` says where."""

    def __init__(self, name: str, upload: dict[str, Any]) -> None:
        super().__init__(f"the records of {name} were refused: {upload.get('errors', upload)}")
        self.upload = upload


def send_file(
    connection: Connection, path: str, file: Path, media_type: str | None, progress: Progress
) -> Any:
    """PUT a file; the JSON of the reply. A name that ends in ``.gz`` is sent as it is."""
    zipped = file.suffix == ".gz"
    kind = file.with_suffix("").suffix if zipped else file.suffix
    if media_type is None and kind not in MEDIA_TYPES:
        raise ValueError(f"say the media type of {file.name}: its name does not tell")
    total = os.stat(file).st_size
    headers = {"Content-Type": media_type or MEDIA_TYPES[kind], "Content-Length": str(total)}
    if zipped:
        headers["Content-Encoding"] = "gzip"

    class Chunks:
        """Opens the file anew for every attempt to send it."""

        def __iter__(self) -> Iterator[bytes]:
            sent = 0
            with file.open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
                    sent += len(chunk)
                    progress.bytes(sent, total)
            progress.note("sent; being checked")

    # Not repeatable: what was cut off may have arrived in full and be a new version already.
    return connection.json("PUT", path, content=Chunks(), headers=headers, repeatable=False)


def until_ready(connection: Connection, name: str, progress: Progress) -> Dataset:
    """The dataset once its new version can be queried. Raises: RecordsRefused."""
    started = time.monotonic()
    while True:
        dataset = Dataset.of(connection.json("GET", f"/v1/datasets/{part(name)}"))
        if dataset.status == "refused":
            raise RecordsRefused(name, dataset.description["upload"])
        if dataset.status != "preparing":
            return dataset
        progress.note(f"being prepared for {time.monotonic() - started:.0f} s")
        time.sleep(POLL)
