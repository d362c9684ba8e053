"""Sources of records: the owner attaches a table to a dataset, and pulls it as an upload.

Owners name sources and tables of a listing. No address, path or SQL text comes from them, and what
a source says goes to the owner alone.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

import structlog
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from app.contract.datasets import UploadOut
from app.contract.errors import BodyTooSlow, InvalidRequest
from app.contract.models import Listing
from app.contract.sources import AttachmentOut, SourceIn, SourceOut
from app.identity.callers import Caller
from app.usecases import records
from app.usecases.records import Delivery
from app.usecases.services import Services
from app.usecases.visibility import owned, require
from storage.catalogue.dataset_sources import Attachment
from storage.catalogue.datasets import StoredDataset
from storage.errors import Busy, NotFound, SourceFailed
from storage.sources.source import NamedSource

log = structlog.get_logger("privypurse.sources")


def listing(services: Services, caller: Caller) -> Listing[SourceOut]:
    """The sources that the caller may use, with their tables."""
    require(caller, "owner")
    usable = [one for one in services.sources.values() if caller.user.name in one.owners]
    return Listing(items=[_described(services, one) for one in usable], next=None)


def require_own(services: Services, caller: Caller, name: str) -> None:
    """Raises: NotFound unless the dataset is the caller's own."""
    require(caller, "owner")
    owned(services, caller, name)


def attach(services: Services, caller: Caller, name: str, wish: SourceIn) -> AttachmentOut:
    """Set the source of a dataset. Raises: NotFound, InvalidRequest, SourceFailed, Busy."""
    require(caller, "owner")
    stored = owned(services, caller, name)
    source = _usable(services, caller, wish.source)
    if source is None:
        msg = "no source of this name is open to you"
        raise InvalidRequest.at("body", "source", type="source", msg=msg)
    if wish.table not in _tables(services, source):
        msg = "not in the listing of the source"
        raise InvalidRequest.at("body", "table", type="table", msg=msg)
    attachment = Attachment(wish.source, wish.table)
    services.datasets.attach(stored.name, attachment, actor=caller.user)
    return AttachmentOut(dataset=stored.name, source=wish.source, table=wish.table)


def attached(services: Services, caller: Caller, name: str) -> AttachmentOut:
    """The source of a dataset. Raises: NotFound, also if it has none."""
    require(caller, "owner")
    stored = owned(services, caller, name)
    attachment = _attachment(services, stored)
    return AttachmentOut(dataset=stored.name, source=attachment.source, table=attachment.table)


def detach(services: Services, caller: Caller, name: str) -> None:
    """Remove the source of a dataset; its records stay. Raises: NotFound, also if it has none."""
    require(caller, "owner")
    stored = owned(services, caller, name)
    _attachment(services, stored)
    services.datasets.attach(stored.name, None, actor=caller.user)


async def pull(services: Services, caller: Caller, name: str) -> UploadOut:
    """Read the table of a dataset's source and take it as an upload.

    Raises: NotFound, also without a source; SourceFailed, also if the operator's file no longer
        lets the owner use the source; the errors of ``records.take_records``.
    """
    require(caller, "owner")
    stored = await run_in_threadpool(owned, services, caller, name)
    attachment = await run_in_threadpool(_attachment, services, stored)
    source = _usable(services, caller, attachment.source)
    if source is None:
        raise SourceFailed("the source is no longer open to you")
    pieces = source.reads.read(attachment.table)
    delivery = Delivery(iterate_in_threadpool(pieces), source.reads.media_type, gzipped=False)
    try:
        with _noted(services, source):
            try:
                return await records.take_records(services, caller, name, delivery)
            except BodyTooSlow:
                raise SourceFailed("the source sent nothing for too long") from None
    finally:
        await run_in_threadpool(_close, pieces)


def _close(pieces: Generator[bytes, None, None]) -> None:
    # To close a generator fails with ValueError while a thread still runs it, as after a cancelled
    # upload from a slow source. When the source answers or its statement times out, that thread
    # drops the generator, which closes it.
    with suppress(ValueError):
        pieces.close()


def _usable(services: Services, caller: Caller, name: str) -> NamedSource | None:
    source = services.sources.get(name)
    return source if source is not None and caller.user.name in source.owners else None


def _attachment(services: Services, stored: StoredDataset) -> Attachment:
    attachment = services.datasets.attachment(stored.id)
    if attachment is None:
        raise NotFound("the dataset has no source")
    return attachment


def _tables(services: Services, source: NamedSource) -> list[str]:
    with _noted(services, source):
        return source.reads.tables()


def _described(services: Services, source: NamedSource) -> SourceOut:
    try:
        tables = _tables(services, source)
    except (SourceFailed, Busy):
        return SourceOut(name=source.name, kind=source.kind, tables=None)
    return SourceOut(name=source.name, kind=source.kind, tables=tables)


@contextmanager
def _noted(services: Services, source: NamedSource) -> Iterator[None]:
    try:
        yield
    except SourceFailed as failed:
        # Danger: a text from the source may quote a record. So the text of this error only names
        # the kind of failure.
        log.warning("a source failed", error=f"{source.name}: {failed}")
        services.metrics.note_source(source.name, fails=True)
        raise
    services.metrics.note_source(source.name, fails=False)
