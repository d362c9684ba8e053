"""The auditor's pages: do chains hold, do books agree, who was refused, who changed what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.contract.audit import AuditLine
from app.contract.ledger import VerificationOut
from app.dashboard.exports import csv_file
from app.dashboard.pages import pages as pages_router
from app.dashboard.templating import render
from app.http.access import Caller, CurrentCaller, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.usecases import audit, budgets, ledger, refusals
from app.usecases.services import Services

pages = pages_router()

PAGE = 50
#: Datasets of one reconciliation.
MOST = 1000
Days = Annotated[int, Query(ge=1, le=366)]
COLUMNS = ("hour", "analyst", "dataset", "type", "refusals")


@pages.get("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
def verification(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """The books as they stand; the chains are recomputed on request."""
    return _page(request, caller, services, None)


@pages.post("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
def verify_now(request: Request, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Recompute every chain that the caller may see."""
    return _page(request, caller, services, ledger.verify(services, caller))


def _page(
    request: Request, caller: Caller, services: Services, outcome: VerificationOut | None
) -> Response:
    books = budgets.reconcile(services, caller, MOST)
    return render(request, "verification.html", outcome=outcome, books=books)


@pages.get("/ui/refusals", dependencies=[allow("auditor")])
def refusals_page(
    request: Request, caller: CurrentCaller, services: ServicesDep, days: Days = 7
) -> Response:
    """Refused queries by analyst, dataset, type and hour, and where they come in bursts."""
    rows = refusals.latest(services, caller, days)
    return render(
        request,
        "refusals.html",
        rows=rows,
        bursts=refusals.bursts(rows),
        burst=refusals.BURST,
        days=days,
    )


@pages.get("/ui/refusals.csv", dependencies=[allow("auditor")])
def refusals_csv(caller: CurrentCaller, services: ServicesDep, days: Days = 7) -> Response:
    """The same as a file."""
    counts = refusals.latest(services, caller, days)
    rows = ({**asdict(one), "hour": one.hour.isoformat()} for one in counts)
    return csv_file("refusals", COLUMNS, rows)


@pages.get("/ui/audit", dependencies=[allow("auditor")])
def trail(
    request: Request, caller: CurrentCaller, services: ServicesDep, cursor: PageCursor = None
) -> Response:
    """The changes of users, keys, grants, uploads and limits, with their actors."""
    page = audit.page(services, caller, PAGE, cursor)
    return render(request, "audit.html", lines=page.items, next=page.next)


@pages.get("/ui/audit.csv", dependencies=[allow("auditor")])
def trail_csv(caller: CurrentCaller, services: ServicesDep) -> Response:
    """The whole trail as a file."""
    rows = (line.model_dump(mode="json") for line in audit.every_line(services, caller))
    return csv_file("audit", list(AuditLine.model_fields), rows)
