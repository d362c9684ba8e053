"""The auditor's pages: verification of the ledger, refused queries, and the audit trail."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.contract.audit import AuditLine
from app.contract.ledger import VerificationOut
from app.contract.times import moment
from app.dashboard.exports import csv_file
from app.dashboard.pages import pages
from app.dashboard.search import search_page
from app.dashboard.visit import PAGE, CurrentVisit, Visit
from app.http.access import allow
from app.http.dependencies import PageCursor
from app.usecases import audit, ledger, refusals
from app.usecases.accounts import budgets

Days = Annotated[int, Query(ge=1, le=366)]
COLUMNS = ("hour", "analyst", "dataset", "type", "refusals")


@pages.get("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
def verification(visit: CurrentVisit) -> Response:
    """The last verification with its age, and the reconciliation of the accounts."""
    return _page(visit, visit.run(ledger.latest))


@pages.post("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
async def verify_now(visit: CurrentVisit) -> Response:
    """Verify the ledger now, or show the last verification if this takes over two seconds."""
    outcome = await visit.run(ledger.verify)
    return await run_in_threadpool(_page, visit, outcome)


def _page(visit: Visit, outcome: VerificationOut | None) -> Response:
    orders = {
        "contradictions": lambda one: (one.agrees, one.dataset),
        "name": lambda one: one.dataset,
    }
    books = search_page(visit, visit.run(budgets.reconcile), lambda one: one.dataset, orders)
    return visit.render("verification.html", outcome=outcome, books=books)


@pages.get("/ui/refusals", dependencies=[allow("auditor")])
def refusals_page(visit: CurrentVisit, days: Days = 7) -> Response:
    """The number of refused queries by analyst, dataset, type and hour, and their bursts."""
    rows = visit.run(refusals.latest, days)
    bursts = refusals.bursts(rows)
    return visit.render("refusals.html", rows=rows, bursts=bursts, burst=refusals.BURST, days=days)


@pages.get("/ui/refusals.csv", dependencies=[allow("auditor")])
def refusals_csv(visit: CurrentVisit, days: Days = 7) -> Response:
    """The refused queries as a CSV file."""
    counts = visit.run(refusals.latest, days)
    members = (asdict(one) for one in counts)
    rows = ({"hour": moment(row.pop("hour_us")).isoformat(), **row} for row in members)
    return csv_file("refusals", COLUMNS, rows)


@pages.get("/ui/audit", dependencies=[allow("auditor")])
def trail(visit: CurrentVisit, cursor: PageCursor = None) -> Response:
    """The changes of users, keys, grants, uploads and limits, with their actors."""
    page = visit.run(audit.page, PAGE, cursor)
    return visit.render("audit.html", lines=page.items, next=page.next)


@pages.get("/ui/audit.csv", dependencies=[allow("auditor")])
def trail_csv(visit: CurrentVisit) -> Response:
    """The whole audit trail as a CSV file."""
    rows = (line.model_dump(mode="json") for line in visit.run(audit.every_line))
    return csv_file("audit", list(AuditLine.model_fields), rows)
