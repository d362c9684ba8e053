"""Renders templates into pages: all values are escaped, and an undefined name is an error."""

from pathlib import Path
from typing import Any

from fastapi import Request
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from app import __version__
from app.contract.times import moment
from app.dashboard.glossary import terms_of
from app.dashboard.navigation import NOTICES, links_for, paths_for
from app.queries import QUERY_KINDS
from app.queries.parts import sentences
from app.queries.parts.sentences import words

HERE = Path(__file__).parent
PARTS = Path(sentences.__file__).parent

ENVIRONMENT = Environment(
    # The template ``<kind>/answer.html`` is in the folder of its query kind. Templates that several
    # kinds share are in ``parts``.
    loader=ChoiceLoader(
        [
            FileSystemLoader(HERE / "templates"),
            PrefixLoader(
                {"parts": FileSystemLoader(PARTS)}
                | {one.name: FileSystemLoader(one.folder) for one in QUERY_KINDS.values()}
            ),
        ]
    ),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
ENVIRONMENT.globals["version"] = __version__
ENVIRONMENT.globals["terms_of"] = terms_of

#: Browsers send the address of a page as referrer to this site only. Without any referrer they
#: would send forms with the origin "null", which ``check_origin`` refuses.
HEADERS = {"Referrer-Policy": "same-origin"}


def _marked(text: str) -> Markup:
    """A text of the API as HTML, with each name in backquotes as emphasized words."""
    parts = text.split("`")
    named = (
        Markup("<em>{}</em>").format(words(part)) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )
    return Markup("").join(named)


def _duration(seconds: int) -> str:
    """A number of whole hours, or of whole days from two days on."""
    days, hours = seconds // 86_400, max(1, seconds // 3600)
    number, unit = (days, "day") if days > 1 else (hours, "hour")
    return f"{number} {unit}{'s' if number > 1 else ''}"


ENVIRONMENT.filters |= {
    "duration": _duration,
    "from_us": moment,
    "label": lambda query: QUERY_KINDS[query["kind"]].label(query),
    "marked": _marked,
    "moment": lambda at: at.strftime("%Y-%m-%d %H:%M:%S UTC"),
    "words": words,
}


def render(
    request: Request,
    template: str,
    /,
    status_code: int | None = None,
    *,
    bell: int = 0,
    **context: Any,
) -> HTMLResponse:
    """The page that ``template`` renders from ``context``, with the links of a signed-in caller.

    ``bell``: the number of the caller's notices. The status of the page is ``status_code``, or else
    the status of its ``alert``, or else 200.
    """
    caller = getattr(request.state, "caller", None)
    alert = context.get("alert")
    page = ENVIRONMENT.get_template(template).render(
        user=caller,
        links=[] if caller is None else links_for(caller),
        paths=frozenset() if caller is None else paths_for(caller),
        here=request.url.path,
        bell={NOTICES: bell},
        csrf=getattr(request.state, "csrf", ""),
        **context,
    )
    return HTMLResponse(page, status_code or (alert.kind.status if alert else 200), HEADERS)
