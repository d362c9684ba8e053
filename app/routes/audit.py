"""The audit trail: who changed users, keys, grants, uploads, withdrawals and limits."""

from app.contract.audit import AuditLine
from app.contract.models import Listing
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases import audit
from storage.errors import InvalidCursor

api = router(prefix="/v1", tags=["ledger"])


@api.get("/audit", dependencies=[allow("auditor")], responses=problems(InvalidCursor))
def audit_trail(
    caller: CurrentCaller,
    services: ServicesDep,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[AuditLine]:
    """List changes by people and by the operator, newest first."""
    return audit.page(services, caller, limit, cursor)
