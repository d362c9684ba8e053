"""Reading and verifying the ledger: every change of every account, in the order of its chain."""

from typing import Annotated

from fastapi import Query

from app.contract.errors import Busy, RateLimited
from app.contract.ledger import EntryKind, EntryOut, VerificationOut
from app.contract.models import Listing, Name
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow
from app.http.dependencies import DEFAULT_LIMIT, DatasetFilter, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases import ledger
from storage.errors import InvalidCursor

api = router(prefix="/v1", tags=["ledger"])

#: ``?kind=``: one kind of entry, such as charges.
KindFilter = Annotated[EntryKind | None, Query(description="Only entries of this kind.")]
#: ``?analyst=``: a name. The pattern excludes characters that a database might refuse to compare.
AnalystFilter = Annotated[Name | None, Query(description="Only accounts of this analyst.")]


@api.get(
    "/ledger",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(InvalidCursor, Busy, RateLimited),
)
def list_entries(
    caller: CurrentCaller,
    services: ServicesDep,
    dataset: DatasetFilter = None,
    kind: KindFilter = None,
    analyst: AnalystFilter = None,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[EntryOut]:
    """List entries, newest first: one's own, those of own datasets, or all for auditors."""
    filters = ledger.Filters(dataset_name=dataset, kind=kind, analyst_name=analyst)
    return ledger.page(services, caller, limit, cursor, filters)


@api.get(
    "/ledger/verification",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(Busy),
)
async def verify_ledger(caller: CurrentCaller, services: ServicesDep) -> VerificationOut:
    """Verify the ledger: a run that begins now, or the last one if this takes over two seconds."""
    return await ledger.verify(services, caller)
