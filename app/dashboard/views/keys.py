"""The page of a user's own API keys: list them, issue one, revoke one."""

from starlette.responses import Response

from app.contract.people import KeyOut
from app.dashboard.pages import pages, to
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import any_key
from app.usecases import keys


@pages.get("/ui/keys", dependencies=[any_key])
def own_keys(visit: CurrentVisit) -> Response:
    """The caller's own keys."""
    return _page(visit, None)


@pages.post("/ui/keys", dependencies=[any_key])
def one_more(visit: CurrentVisit) -> Response:
    """Issue a key; only this page shows it, and only once."""
    return _page(visit, visit.run(keys.issue, visit.caller.name))


@pages.post("/ui/keys/{id}/revoke", dependencies=[any_key])
def revoke(visit: CurrentVisit, id: str) -> Response:
    """Revoke a key; if it is the key that opened this session, the session ends too."""
    visit.run(keys.revoke, id)
    return to("/ui/keys")


def _page(visit: Visit, issued: KeyOut | None) -> Response:
    own = visit.run(keys.page, visit.caller.name).items
    return visit.render("keys.html", keys=own, issued=issued, current=visit.caller.key_id)
