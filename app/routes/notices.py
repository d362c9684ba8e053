"""Notices: what concerns the caller now."""

from app.contract.models import Listing
from app.contract.notices import NoticeOut
from app.http.access import CurrentCaller, any_key
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases import notices

api = router(prefix="/v1", tags=["budgets"])


@api.get("/notices", dependencies=[any_key])
def own_notices(caller: CurrentCaller, services: ServicesDep) -> Listing[NoticeOut]:
    """List the caller's notices, newest first: budgets that are low, new versions, freezes."""
    return notices.page(services, caller)
