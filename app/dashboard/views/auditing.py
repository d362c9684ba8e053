"""The auditor's pages: do chains hold, do books agree, who was refused, who changed what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.contract.times import moment
from app.dashboard.bursts import BURST, bursts
from app.dashboard.exports import csv_file
from app.dashboard.pages import pages as pages_router
from app.dashboard.reconciliation import reconciled
from app.dashboard.templating import render
from app.http.access import CurrentUser, allow
from app.http.dependencies import PageCursor, ServicesDep
from app.routes.audit import AuditLine, audit_trail
from app.routes.ledger import VerificationOut, verify_ledger
from app.usecases.services import Services
from storage.assurance.refusals import HOUR_US, RefusalRow
from storage.people.users import User

pages = pages_router()

PAGE, EXPORT_PAGE = 50, 1000
#: Datasets of one reconciliation.
MOST = 1000
Days = Annotated[int, Query(ge=1, le=366)]
COLUMNS = ("hour", "analyst", "dataset", "type", "refusals")


@pages.get("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
def verification(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """The books as they stand; the chains are recomputed when that is asked for."""
    return _page(request, user, services, None)


@pages.post("/ui/verification", dependencies=[allow("analyst", "owner", "auditor")])
def verify_now(request: Request, user: CurrentUser, services: ServicesDep) -> Response:
    """Recompute every chain that the caller may see."""
    return _page(request, user, services, verify_ledger(user, services))


def _page(
    request: Request, user: User, services: Services, found: VerificationOut | None
) -> Response:
    names: list[str] = []
    if user.roles & {"auditor", "owner"}:
        names = [
            stored.name
            for stored in services.datasets.page(user, MOST).items
            if "auditor" in user.roles or stored.owner_id == user.id
        ]
    books = reconciled(sorted(names), user, services)
    return render(request, "verification.html", found=found, books=books)


@pages.get("/ui/refusals", dependencies=[allow("auditor")])
def refusals(request: Request, services: ServicesDep, days: Days = 7) -> Response:
    """Refused queries by analyst, dataset, type and hour, and where they come in bursts."""
    rows = _refusals(services, days)
    return render(
        request,
        "refusals.html",
        rows=[(moment(row.hour_us), row) for row in rows],
        bursts=bursts(rows),
        burst=BURST,
        days=days,
    )


@pages.get("/ui/refusals.csv", dependencies=[allow("auditor")])
def refusals_csv(services: ServicesDep, days: Days = 7) -> Response:
    """The same as a file."""
    rows = (
        {**asdict(row), "hour": moment(row.hour_us).isoformat()}
        for row in _refusals(services, days)
    )
    return csv_file("refusals", COLUMNS, ({k: row[k] for k in COLUMNS} for row in rows))


def _refusals(services: Services, days: int) -> list[RefusalRow]:
    now = services.database.now_us()
    return services.refusals.since(now // HOUR_US * HOUR_US - (days * 24 - 1) * HOUR_US)


@pages.get("/ui/audit", dependencies=[allow("auditor")])
def trail(request: Request, services: ServicesDep, cursor: PageCursor = None) -> Response:
    """Who changed users, keys, grants, uploads and limits."""
    page = audit_trail(services, PAGE, cursor)
    return render(request, "audit.html", lines=page.items, next=page.next)


@pages.get("/ui/audit.csv", dependencies=[allow("auditor")])
def trail_csv(services: ServicesDep) -> Response:
    """The whole trail as a file."""
    rows = (line.model_dump(mode="json") for line in _all(services))
    return csv_file("audit", list(AuditLine.model_fields), rows)


def _all(services: Services) -> Iterator[AuditLine]:
    cursor: str | None = None
    while True:
        page = audit_trail(services, EXPORT_PAGE, cursor)
        yield from page.items
        cursor = page.next
        if cursor is None:
            return
