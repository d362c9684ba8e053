"""Registering a dataset: a form editor for its public description, and the same as JSON.

The draft travels in the form itself, so that every step works without script and nothing of an
unfinished description is stored.
"""

import json
import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import TypeAdapter
from starlette.responses import Response

from app.contract.descriptions import REGISTRATIONS, Registration
from app.dashboard.alerts import Alert, alert_of
from app.dashboard.drafts import (
    ATTRIBUTE_KINDS,
    KINDS,
    WIDTHS,
    AttributeDraft,
    Draft,
    code_book,
)
from app.dashboard.forms import Form, SentForm, read, read_json
from app.dashboard.pages import pages, to
from app.dashboard.visit import CurrentVisit, Visit
from app.http.access import allow
from app.http.declarations import body_limit
from app.usecases import datasets
from app.usecases.accounts import purchases
from storage.errors import NotFound

REGISTRATION: TypeAdapter[Any] = TypeAdapter(Registration)
#: The most bytes of a form with a description: code books of many values are long.
FORM_BYTES = 4 * 2**20
#: Members of a reply about a dataset that are not in its description, so the form leaves them out.
STATE = frozenset({"owner", "version", "status", "created", "upload", "versions"})
Kind = Annotated[Literal["graph", "table", "prefix"], Query()]


@pages.get("/ui/register", dependencies=[allow("owner")])
def registration(visit: CurrentVisit, kind: Kind = "table") -> Response:
    """An empty draft, and an example of a public description as JSON."""
    blank = (AttributeDraft(),) if kind == "table" else ()
    return _page(visit, Draft(kind, {"cap.epsilon": "", "records_per_person": "1"}, blank))


@pages.post("/ui/register", dependencies=[allow("owner"), body_limit(FORM_BYTES)])
def register_one(visit: CurrentVisit, form: SentForm) -> Response:
    """Register the description in the JSON field, or open it in the form editor."""
    text = form.get("description")
    try:
        if form.get("do") == "open":
            return _page(visit, Draft.read(text), text)
        described = read_json(REGISTRATION, text)
        visit.run(datasets.register, described)
    except Exception as error:
        return _page(visit, Draft(), text, alert=alert_of(error))
    return to(f"/ui/datasets/{described.name}")


@pages.post("/ui/register/draft", dependencies=[allow("owner"), body_limit(FORM_BYTES)])
def change_draft(visit: CurrentVisit, form: SentForm) -> Response:
    """One step of the editor: change the list of attributes, check the draft, or register it."""
    draft, replaces = Draft(), form.get("replaces")
    try:
        draft = Draft.sent(form)
        what, _, place = form.get("do").partition(" ")
        if what in ("check", "register"):
            described = read(REGISTRATION, draft.description())
            if what == "check":
                return _page(visit, draft, complete=described, replaces=replaces)
            if replaces:
                visit.run(datasets.replace_description, replaces, described)
            else:
                visit.run(datasets.register, described)
            return to(f"/ui/datasets/{described.name}")
        changed = _changed(draft, what, place, form)
        return _page(visit, changed, codes=form.get("codebook"), replaces=replaces)
    except Exception as error:
        alert = alert_of(error)
        return _page(visit, draft, alert=alert, codes=form.get("codebook"), replaces=replaces)


@pages.get("/ui/datasets/{name}/description", dependencies=[allow("owner")])
def description(visit: CurrentVisit, name: str) -> Response:
    """The editor with the description of a dataset, to replace it."""
    details = visit.run(datasets.describe, name)
    if not details.is_owner:
        raise NotFound
    members = details.view.model_dump(mode="json", exclude_none=True)
    described = {one: value for one, value in members.items() if one not in STATE}
    # The service derives the limit in ρ from the other limits and adds it to replies. The owner
    # does not set it, so the form omits it.
    described["cap"].pop("rho", None)
    return _page(visit, Draft.read(json.dumps(described)), replaces=name)


def _changed(draft: Draft, what: str, place: str, form: Form) -> Draft:
    """The draft after a step that only edits it. Raises: InvalidRequest."""
    attributes = list(draft.attributes)
    match what:
        case "add":
            attributes.append(AttributeDraft())
        case "remove" if re.fullmatch(r"[0-9]{1,4}", place) and int(place) < len(attributes):
            del attributes[int(place)]
        case "read":
            coded = code_book(form.get("codebook"))
            by_name = {one.name: one for one in coded}
            attributes = [by_name.pop(one.name, one) for one in attributes if one.name]
            attributes += by_name.values()
    return replace(draft, attributes=tuple(attributes))


def _page(
    visit: Visit,
    draft: Draft,
    text: str = "",
    complete: Any = None,
    alert: Alert | None = None,
    codes: str = "",
    replaces: str = "",
) -> Response:
    example = json.dumps(REGISTRATIONS[draft.kind]["value"], indent=2, ensure_ascii=False)
    bought = [] if complete is None else visit.run(purchases.of_draft, complete, complete.cap.loss)
    return visit.render(
        "register.html",
        draft=draft,
        kinds=KINDS,
        attribute_kinds=ATTRIBUTE_KINDS,
        widths=WIDTHS,
        faulty=_faulty(alert),
        complete=complete is not None,
        purchases=bought,
        codes=codes,
        replaces=replaces,
        json_text=text or example,
        alert=alert,
    )


def _faulty(alert: Alert | None) -> frozenset[int]:
    """The numbers of the attributes in which the models found a mistake."""
    places = (error["loc"] for error in alert.errors) if alert else ()
    return frozenset(
        loc[loc.index("attributes") + 1]
        for loc in map(list, places)
        if "attributes" in loc[:-1] and isinstance(loc[loc.index("attributes") + 1], int)
    )
