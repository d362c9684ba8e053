"""The query kinds. Each kind is one folder, and this package imports every folder it contains.

A folder holds ``body.py`` (fields, price, computation, targets, question), ``answer.html``,
``examples.py``, and ``KIND`` in ``__init__.py``. A kind with its own form or drawing adds
``form.py`` or ``drawing.py``. Code that several kinds share is in ``parts``. A new kind needs only
a new folder.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

from pydantic import Field, TypeAdapter

from app.queries.parts.examples import reply
from app.queries.parts.kind import Format as Format
from app.queries.parts.kind import Kind as Kind
from app.queries.parts.query import Query as Query
from app.queries.parts.query import QueryContext as QueryContext


def _kinds() -> dict[str, Kind]:
    folders = [one.name for one in iter_modules(__path__) if one.ispkg and one.name != "parts"]
    kinds: list[Kind] = [import_module(f"{__name__}.{folder}").KIND for folder in folders]
    ordered = sorted(kinds, key=lambda kind: (kind.form.order, kind.name))
    return {kind.name: kind for kind in ordered}


#: All query kinds by name, in the order in which the catalogue and the pages list them.
QUERY_KINDS: dict[str, Kind] = _kinds()

#: The formats besides JSON in which answers can be downloaded, by name. Each is offered by at least
#: one kind.
FORMATS: dict[str, Format] = {
    name: form for kind in QUERY_KINDS.values() for name, form in kind.formats.items()
}

if TYPE_CHECKING:
    AnyQuery: TypeAlias = Query
    FormatName: TypeAlias = str
else:
    #: The body of a query of any kind.
    AnyQuery = Annotated[
        Union[tuple(kind.model or kind.body for kind in QUERY_KINDS.values())],  # noqa: UP007
        # OpenAPI maps each discriminator value to one model, but a kind may have several models.
        # The document therefore omits the discriminator; constants such as ``kind`` identify them.
        Field(discriminator="kind", json_schema_extra=lambda schema: schema.pop("discriminator")),
    ]
    FormatName = Literal[("json", *FORMATS)]

QUERY: TypeAdapter[Query] = TypeAdapter(AnyQuery)


def example_reply() -> dict[str, Any]:
    """Returns the example reply of the OpenAPI document, for a query of the first kind."""
    examples = next(iter(QUERY_KINDS.values())).examples
    query = QUERY.validate_python(examples.request["query"], strict=False)
    return reply(query, examples.request, examples.answer)
