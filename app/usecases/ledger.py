"""Reading and verifying the ledger: every change of every account, in the order of its chain."""

from collections.abc import Iterator
from threading import Lock
from typing import TypedDict

from app.contract.errors import Busy
from app.contract.ledger import EntryKind, EntryOut, VerificationOut
from app.contract.models import Listing
from app.identity.callers import Caller
from app.usecases.pages import every_item
from app.usecases.services import Services
from app.usecases.visibility import listing_scope, require
from storage.assurance.heads import HeadsLog
from storage.assurance.verification import verify as verify_database
from storage.queries.entry_pages import page_of_entries

#: Held during a verification, which reads the whole ledger: one runs at a time in a process.
_VERIFYING = Lock()


class Filters(TypedDict):
    """A list has only the entries of this dataset, kind and analyst; None admits all of them."""

    dataset_name: str | None
    kind: EntryKind | None
    analyst_name: str | None


def page(
    services: Services, caller: Caller, limit: int, cursor: str | None, filters: Filters
) -> Listing[EntryOut]:
    """One page of entries, newest first.

    Analysts see entries of their own accounts, owners those of their datasets, and auditors all.
    Raises: InvalidCursor.
    """
    require(caller, "analyst", "owner", "auditor")
    entries = page_of_entries(
        services.database, **listing_scope(caller), **filters, limit=limit, cursor=cursor
    )
    return Listing[EntryOut].model_validate(entries)


def every_entry(services: Services, caller: Caller, filters: Filters) -> Iterator[EntryOut]:
    """All entries that the filters admit, newest first, read page by page."""
    return every_item(lambda limit, cursor: page(services, caller, limit, cursor, filters))


def verify(services: Services, caller: Caller) -> VerificationOut:
    """Recompute the chains and sums of the accounts that the caller may see, and query outcomes.

    Raises: Busy while another verification runs in this process.
    """
    require(caller, "analyst", "owner", "auditor")
    if not _VERIFYING.acquire(blocking=False):
        raise Busy(retry_after=5)
    try:
        settings = services.settings
        heads = HeadsLog(settings.heads_file(), settings.heads_copy_file())
        heads.refresh()
        outcome = verify_database(
            services.database, **listing_scope(caller), heads=heads.present, released_only=True
        )
    finally:
        _VERIFYING.release()
    return VerificationOut.model_validate(outcome)
