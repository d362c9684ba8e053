"""The audit trail: who changed users, keys, grants, uploads, withdrawals and limits."""

from __future__ import annotations

from collections.abc import Iterator

from app.contract.audit import AuditLine
from app.contract.models import Listing
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.pages import every_item
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.journal.audit import AuditRow, page_of_lines


def page(services: Services, caller: Caller, limit: int, cursor: str | None) -> Listing[AuditLine]:
    """Changes by people and by the operator, newest first. Raises: InvalidCursor."""
    require(caller, "auditor")
    rows = page_of_lines(services.database, limit, cursor)
    return Listing(items=[_line(row) for row in rows.items], next=rows.next)


def every_line(services: Services, caller: Caller) -> Iterator[AuditLine]:
    """The whole trail, newest first, read page by page."""
    return every_item(lambda limit, cursor: page(services, caller, limit, cursor))


def _line(row: AuditRow) -> AuditLine:
    return AuditLine(
        id=row.id,
        at=moment(row.at_us),
        actor=row.actor,
        action=row.action,
        subject=row.subject,
        detail=row.detail,
    )
