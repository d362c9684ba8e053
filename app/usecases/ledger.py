"""The ledger as it may be read: every change of every account, in the order of its chain."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from accounting.privacy_loss import formatted
from app.contract.errors import Busy
from app.contract.ledger import BadRow, EntryKind, EntryOut, VerificationOut
from app.contract.models import Listing
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.pages import every_item
from app.usecases.services import Services
from app.usecases.visibility import listing_scope, require
from storage.assurance.heads import read_heads
from storage.assurance.verification import verify as verify_database
from storage.ledger.entry_pages import EntryRow, page_of_entries

#: The names of the ranks of accounts.
ACCOUNTS = {"ANALYST_ON_DATASET": "analyst", "ANALYST": "analyst_total", "DATASET": "cap"}
#: Held during a verification, which reads the whole ledger: one at a time in a process.
_VERIFYING = Lock()


def page(
    services: Services,
    caller: Caller,
    *,
    dataset: str | None,
    kind: EntryKind | None,
    analyst: str | None,
    limit: int,
    cursor: str | None,
) -> Listing[EntryOut]:
    """Entries, newest first: an analyst's own, an owner's datasets', for auditors all.

    Raises: InvalidCursor.
    """
    require(caller, "analyst", "owner", "auditor")
    rows = page_of_entries(
        services.database,
        **listing_scope(caller),
        dataset_name=dataset,
        kind=kind,
        analyst_name=analyst,
        limit=limit,
        cursor=cursor,
    )
    return Listing(items=[_entry(row) for row in rows.items], next=rows.next)


def every_entry(
    services: Services,
    caller: Caller,
    *,
    dataset: str | None,
    kind: EntryKind | None,
    analyst: str | None,
) -> Iterator[EntryOut]:
    """All entries that the filters admit, newest first, read page by page."""
    return every_item(
        lambda limit, cursor: page(
            services,
            caller,
            dataset=dataset,
            kind=kind,
            analyst=analyst,
            limit=limit,
            cursor=cursor,
        )
    )


def verify(services: Services, caller: Caller) -> VerificationOut:
    """Recompute the chains, sums and endings of the accounts that the caller may see.

    Raises: Busy while another verification runs in this process.
    """
    require(caller, "analyst", "owner", "auditor")
    if not _VERIFYING.acquire(blocking=False):
        raise Busy(retry_after=5)
    try:
        heads = services.settings.heads_file()
        published = read_heads(heads) if heads.is_file() else None
        outcome = verify_database(
            services.database, **listing_scope(caller), heads=published, released_only=True
        )
    finally:
        _VERIFYING.release()
    bad = outcome.first_bad
    return VerificationOut(
        valid=outcome.valid,
        accounts=outcome.accounts,
        entries=outcome.entries,
        head=outcome.head.hex(),
        first_bad=None if bad is None else BadRow(table=bad.table, row=bad.row, reason=bad.reason),
    )


def _entry(row: EntryRow) -> EntryOut:
    return EntryOut(
        account=ACCOUNTS[row.rank.name],
        seq=row.seq,
        kind=row.kind,
        dataset=row.dataset,
        analyst=row.analyst,
        actor=row.actor,
        query=None if row.query_id is None else str(row.query_id),
        **formatted(row.amounts),
        at=moment(row.at_us),
        head=row.head.hex(),
    )
