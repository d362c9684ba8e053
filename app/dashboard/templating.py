"""From a template to a page: everything is escaped, and a name that is missing is an error."""

from pathlib import Path
from typing import Any

from fastapi import Request
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from app import __version__
from app.contract.times import moment
from app.dashboard.navigation import links_for, paths_for
from app.queries import QUERY_KINDS
from app.queries.parts.sentences import words

HERE = Path(__file__).parent

ENVIRONMENT = Environment(
    # ``<kind>/answer.html`` lies in the folder of the kind.
    loader=ChoiceLoader(
        [
            FileSystemLoader(HERE / "templates"),
            PrefixLoader({one.name: FileSystemLoader(one.folder) for one in QUERY_KINDS.values()}),
        ]
    ),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
ENVIRONMENT.globals["version"] = __version__

#: Pages tell no other site where they are, but their own forms say where they come from:
#: without that, browsers send them with the origin "null".
HEADERS = {"Referrer-Policy": "same-origin"}


def _marked(text: str) -> Markup:
    """A text of the API with its `names` set apart, in words."""
    parts = text.split("`")
    named = (
        Markup("<em>{}</em>").format(words(part)) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )
    return Markup("").join(named)


ENVIRONMENT.filters |= {
    "from_us": moment,
    "label": lambda query: QUERY_KINDS[query["kind"]].label(query),
    "marked": _marked,
    "moment": lambda at: at.strftime("%Y-%m-%d %H:%M:%S UTC"),
    "words": words,
}


def render(
    request: Request, template: str, /, status_code: int | None = None, **context: Any
) -> HTMLResponse:
    """The page that ``template`` makes of ``context`` for the caller, if one is signed in.

    Its status is the one of the ``alert`` that it shows, unless another one is named.
    """
    caller = getattr(request.state, "caller", None)
    alert = context.get("alert")
    page = ENVIRONMENT.get_template(template).render(
        user=caller,
        links=[] if caller is None else links_for(caller),
        paths=frozenset() if caller is None else paths_for(caller),
        here=request.url.path,
        csrf=getattr(request.state, "csrf", ""),
        **context,
    )
    return HTMLResponse(page, status_code or (alert.kind.status if alert else 200), HEADERS)
