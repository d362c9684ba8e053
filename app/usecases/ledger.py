"""Reading and verifying the ledger: every change of every account, in the order of its chain."""

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TypedDict

from starlette.concurrency import run_in_threadpool

from app.contract.errors import Busy
from app.contract.ledger import BadRow, EntryKind, EntryOut, Part, Parts, VerificationOut
from app.contract.models import Listing
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.pages import every_item, within
from app.usecases.services import Services
from app.usecases.visibility import listing_scope, require
from storage.assurance.verification import datasets_of
from storage.queries.entry_pages import page_of_entries

#: Seconds that a caller waits for a verification. For a larger ledger the caller gets the outcome
#: of the last run.
WAIT = 2.0
#: Shown instead of a bad row that the caller may not see.
HIDDEN = BadRow(table="ledger", row="a row of others", reason="an auditor can see it")


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
    Raises: InvalidCursor; RateLimited, Busy where others read as much.
    """
    require(caller, "analyst", "owner", "auditor")
    scope = listing_scope(caller)
    # A filter may admit few entries, scattered over the whole ledger. Such a read can be long, so
    # it needs one of the few slots for long reads.
    narrowed = bool(scope) or any(filters.values())
    with services.reads.slot(caller.id) if narrowed else nullcontext():
        return _page(services, scope, limit, cursor, filters)


def _page(
    services: Services, scope: dict[str, Any], limit: int, cursor: str | None, filters: Filters
) -> Listing[EntryOut]:
    entries = page_of_entries(services.database, **scope, **filters, limit=limit, cursor=cursor)
    return Listing[EntryOut].model_validate(entries)


def every_entry(services: Services, caller: Caller, filters: Filters) -> Iterator[EntryOut]:
    """All entries that the filters admit, newest first, read page by page.

    Raises: RateLimited, Busy where others read as much.
    """
    require(caller, "analyst", "owner", "auditor")
    scope = listing_scope(caller)
    entries = every_item(lambda limit, cursor: _page(services, scope, limit, cursor, filters))
    return within(services.reads.slot(caller.id), entries)


async def verify(services: Services, caller: Caller, wait: float = WAIT) -> VerificationOut:
    """The outcome of a run that begins now, or of the last one if this takes over ``wait`` seconds.

    A caller sees the numbers of their own accounts; contradictions concern everybody.
    Raises: Busy if no run has ended yet in this process, or the last one failed.
    """
    require(caller, "analyst", "owner", "auditor")
    run = asyncio.wrap_future(services.verifier.request())
    try:
        await asyncio.wait([run], timeout=wait)
    finally:
        # Cancelling ends only this wait; the verification goes on.
        run.cancel()
    outcome = await run_in_threadpool(latest, services, caller)
    if outcome is None:
        raise Busy(retry_after=5)
    return outcome


def latest(services: Services, caller: Caller) -> VerificationOut | None:
    """The outcome of the last run in this process; None before the first one or after a failure."""
    require(caller, "analyst", "owner", "auditor")
    outcome = services.verifier.latest
    if outcome is None:
        return None
    scope = listing_scope(caller)
    analyst, owner = scope.get("analyst_id"), scope.get("owner_id")
    only = caller.scope
    owned = frozenset() if owner is None else datasets_of(services.database, owner)

    def concerns(row: Any) -> bool:
        if not scope or row.dataset_id in owned:
            return True
        return row.analyst_id == analyst and (not row.dataset_id or only.admits(row.dataset_id))

    # Danger: the extent that a caller sees (how many accounts and entries, and a digest) is cached
    # under this key. So the key must contain everything by which ``concerns`` selects accounts.
    # Otherwise callers would see the extents of others.
    callers = (owned, analyst, only.datasets) if scope else None
    seen = outcome.extent_of(callers, concerns)
    bad = outcome.first_bad
    since = None if services.verifier.whole_us is None else moment(services.verifier.whole_us)
    is_incremental = bad is None and not outcome.whole
    chains = None if bad is not None else moment(outcome.at_us)
    return VerificationOut(
        valid=None if is_incremental else bad is None,
        valid_since=since if is_incremental else None,
        parts=Parts(chains=Part(at=chains), meaning=Part(at=since)),
        accounts=seen.accounts,
        entries=seen.entries,
        head=seen.head,
        first_bad=HIDDEN if bad is not None and not concerns(bad) else bad,
    )
