"""One upload during its preparation, and the reasons that its owner reads if it is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.config.settings import MEGABYTE
from app.contract.errors import BodyTooSlow
from mechanisms.model.domains import Dataset
from storage.catalogue.datasets import StoredDataset
from storage.errors import InvalidRecords, StorageError, StoreFailed
from storage.people.users import User
from storage.records.data_folder import IncomingFile
from storage.records.tickets import Ticket


@dataclass(frozen=True)
class Upload:
    """Records that were received and are being prepared as a version.

    ``path`` is a file that is removed when ``closing`` is closed. ``ticket`` holds the facts that
    another process needs to resume the upload.
    """

    id: int
    dataset: StoredDataset
    public: Dataset
    path: Path
    closing: ExitStack
    ticket: Ticket
    actor: User


class Stopped(Exception):
    """The service is shutting down, so the upload is refused and nothing is published."""


class Interrupted(Exception):
    """Every process that prepared the upload ended before the preparation did."""


def refusal(error: Exception) -> dict[str, Any]:
    """The reasons why an upload was refused, as JSON for its owner."""
    if isinstance(error, InvalidRecords):
        return {
            "errors": [
                {"loc": list(loc), "type": kind, "msg": msg} for loc, kind, msg in error.errors
            ]
        }
    if isinstance(error, Stopped):
        kind, msg = "stopped", "the service was stopped: upload the records again"
    elif isinstance(error, Interrupted):
        kind, msg = "interrupted", "the preparation was interrupted: upload the records again"
    elif isinstance(error, StoreFailed):
        kind, msg = "store-unavailable", f"{error}: upload the records again"
    elif isinstance(error, StorageError):
        kind, msg = "refused", str(error)
    else:
        kind, msg = "internal-error", "the service failed: upload the records again"
    return {"errors": [{"loc": ["upload"], "type": kind, "msg": msg}]}


async def write_body(file: IncomingFile, stream: AsyncIterator[bytes], patience: float) -> None:
    """Write a body to a file. Raises: BodyTooSlow after ``patience`` seconds without a chunk."""
    buffer = bytearray()
    while True:
        try:
            async with asyncio.timeout(patience):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise BodyTooSlow from None
        if chunk is None:
            break
        buffer += chunk
        if len(buffer) >= MEGABYTE:
            await run_in_threadpool(file.write, bytes(buffer))
            buffer.clear()
    await run_in_threadpool(file.write, bytes(buffer))
    await run_in_threadpool(file.close)
