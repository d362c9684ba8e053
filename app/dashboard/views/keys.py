"""The page of a user's own API keys: list them, issue one, revoke one."""

from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from app.contract.people import KeyIn, KeyOut
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.forms import Form, SentForm, read
from app.dashboard.pages import pages, to
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import any_key
from app.usecases.people import keys

KEY: TypeAdapter[KeyIn] = TypeAdapter(KeyIn)


@pages.get("/ui/keys", dependencies=[any_key])
def own_keys(visit: CurrentVisit) -> Response:
    """The caller's own keys."""
    return _page(visit)


@pages.post("/ui/keys", dependencies=[any_key])
def one_more(visit: CurrentVisit, form: SentForm) -> Response:
    """Issue a key; only this page shows it, and only once."""
    try:
        issued = visit.run(keys.issue, visit.caller.name, read(KEY, _fields(form)))
    except Exception as error:
        return _page(visit, alert=alert_of(error))
    return _page(visit, issued)


@pages.post("/ui/keys/{id}/revoke", dependencies=[any_key])
def revoke(visit: CurrentVisit, id: str) -> Response:
    """Revoke a key; if it is the key that opened this session, the session ends too."""
    visit.run(keys.revoke, id)
    return to("/ui/keys")


def _fields(form: Form) -> dict[str, Any]:
    """The body that the form describes; a field that is left empty restricts nothing."""
    fields: dict[str, Any] = {name: form.get(name) or None for name in ("epsilon", "delta")}
    until = form.get("until")
    fields["until"] = f"{until}T00:00:00Z" if until else None
    fields["datasets"] = form.all("datasets") or None
    return fields


def _page(visit: Visit, issued: KeyOut | None = None, alert: Alert | None = None) -> Response:
    own = visit.run(keys.overview)
    return visit.render(
        "keys.html", own=own, issued=issued, alert=alert, current=visit.caller.key_id
    )
