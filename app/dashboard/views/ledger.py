"""The page of the ledger: all entries that the caller may see, with filters and as CSV."""

from typing import Annotated
from urllib.parse import urlencode

from starlette.responses import Response

from app.contract.ledger import EntryKind, EntryOut
from app.dashboard.exports import csv_file
from app.dashboard.forms import NameOrNone, optional
from app.dashboard.pages import pages
from app.dashboard.visit import PAGE, CurrentVisit
from app.http.access import allow
from app.http.dependencies import PageCursor
from app.usecases import ledger

KindOrNone = Annotated[EntryKind | None, optional]
KINDS: dict[EntryKind, str] = {
    "charge": "charges",
    "release": "charges given back",
    "limit_change": "changed limits",
    "genesis": "accounts opened",
    "freeze": "freezes",
    "unfreeze": "unfreezes",
}


@pages.get("/ui/ledger", dependencies=[allow("analyst", "owner", "auditor")])
def entries_page(
    visit: CurrentVisit,
    dataset: NameOrNone = "",
    kind: KindOrNone = None,
    analyst: NameOrNone = "",
    cursor: PageCursor = None,
) -> Response:
    """One page of entries, newest first."""
    filters = ledger.Filters(dataset_name=dataset or None, kind=kind, analyst_name=analyst or None)
    page = visit.run(ledger.page, PAGE, cursor, filters)
    chosen = {"dataset": dataset, "kind": kind or "", "analyst": analyst}
    return visit.render(
        "ledger.html",
        entries=page.items,
        next=page.next,
        chosen=chosen,
        query=urlencode({name: value for name, value in chosen.items() if value}),
        kinds=KINDS,
        alone=visit.caller.sees_only_own,
    )


@pages.get("/ui/ledger.csv", dependencies=[allow("analyst", "owner", "auditor")])
def entries_csv(
    visit: CurrentVisit,
    dataset: NameOrNone = "",
    kind: KindOrNone = None,
    analyst: NameOrNone = "",
) -> Response:
    """All entries that match the filters, as a CSV file."""
    filters = ledger.Filters(dataset_name=dataset or None, kind=kind, analyst_name=analyst or None)
    entries = visit.run(ledger.every_entry, filters)
    rows = (entry.model_dump(mode="json") for entry in entries)
    return csv_file("ledger", list(EntryOut.model_fields), rows)
