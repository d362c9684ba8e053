"""The audit trail: who changed users, keys, grants, uploads, withdrawals and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.contract.models import Listing, Reply
from app.contract.problems import problems
from app.contract.times import moment
from app.http.access import allow
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from storage.errors import InvalidCursor
from storage.journal.audit import page_of_lines

api = router(prefix="/v1", tags=["ledger"])


class AuditLine(Reply):
    """One change: ``subject`` names what was changed, ``detail`` says to what."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


@api.get("/audit", dependencies=[allow("auditor")], responses=problems(InvalidCursor))
def audit_trail(
    services: ServicesDep, limit: PageLimit = DEFAULT_LIMIT, cursor: PageCursor = None
) -> Listing[AuditLine]:
    """Changes by people and by the operator, newest first."""
    page = page_of_lines(services.database, limit, cursor)
    items = [
        AuditLine(
            id=row.id,
            at=moment(row.at_us),
            actor=row.actor,
            action=row.action,
            subject=row.subject,
            detail=row.detail,
        )
        for row in page.items
    ]
    return Listing(items=items, next=page.next)
