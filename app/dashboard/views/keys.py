"""One's own keys: what they are, one more, one less."""

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
    """Issue a key; it is on this one page and nowhere else."""
    return _page(visit, visit.run(keys.issue, visit.caller.name))


@pages.post("/ui/keys/{id}/revoke", dependencies=[any_key])
def revoke(visit: CurrentVisit, id: str) -> Response:
    """Revoke a key; with the one that opened this session the session ends."""
    visit.run(keys.revoke, id)
    return to("/ui/keys")


def _page(visit: Visit, issued: KeyOut | None) -> Response:
    own = visit.run(keys.page, visit.caller.name).items
    return visit.render("keys.html", keys=own, issued=issued, current=visit.caller.key_id)
