"""The audit trail: who changed users, keys, grants, uploads, withdrawals and limits."""

from collections.abc import Iterator

from app.contract.audit import AuditLine
from app.contract.models import Listing
from app.identity.callers import Caller
from app.usecases.pages import every_item, within
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.journal.audit import page_of_lines


def page(services: Services, caller: Caller, limit: int, cursor: str | None) -> Listing[AuditLine]:
    """One page of the audit trail, newest line first. Raises: InvalidCursor."""
    require(caller, "auditor")
    lines = page_of_lines(services.database, limit, cursor)
    return Listing[AuditLine].model_validate(lines)


def every_line(services: Services, caller: Caller) -> Iterator[AuditLine]:
    """All lines of the audit trail, newest first; the lines are read page by page.

    Raises: RateLimited, Busy where others read as much.
    """
    require(caller, "auditor")
    lines = every_item(lambda limit, cursor: page(services, caller, limit, cursor))
    return within(services.reads.slot(caller.id), lines)
