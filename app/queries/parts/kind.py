"""The description of a query kind for the rest of the service; each folder of a kind has one.

Routes, pages, snippets, documentation and warm-up read these fields and name no kind themselves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getfile
from pathlib import Path
from typing import Any

from app.queries.parts.columns import Columns, plain_columns
from app.queries.parts.examples import Examples
from app.queries.parts.form import KindForm
from app.queries.parts.query import CatalogueEntry
from app.queries.parts.sentences import words
from mechanisms.model.domains import NeighbouringRelation

#: A query as the database stores it: the JSON object of the request.
Stored = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """A format of answers: its media type, and the function that writes an answer as text."""

    media_type: str
    write: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Kind:
    """One query kind, such as ``selection`` or ``tree``."""

    form: KindForm
    examples: Examples
    #: Returns the name of the mechanism of a query, by which a history groups its queries.
    mechanism: Callable[[Stored, NeighbouringRelation], str]
    #: The positional arguments of the client's call after the dataset; all others are keywords.
    arguments: tuple[str, ...]
    #: The type that parses a request, if the kind has several bodies.
    model: Any = None
    #: Returns what ``answer.html`` shows in addition to the answer, such as a drawing.
    draw: Callable[[Mapping[str, Any]], Any] = lambda answer: None  # noqa: ARG005 - shown as it is
    #: The parameter whose value lists of queries show beside the name of the kind.
    subject: str | None = None
    #: Returns the answer as columns, from which files for data frames are written.
    columns: Callable[[Mapping[str, Any]], Columns] = plain_columns
    #: The formats of an answer in addition to JSON, by name.
    formats: Mapping[str, Format] = field(default_factory=dict)

    @property
    def body(self) -> type[CatalogueEntry]:
        """The class with the catalogue entry: name, title, description, parameters."""
        return self.form.body

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def folder(self) -> Path:
        """The folder of the kind, which holds its template ``answer.html``."""
        return Path(getfile(self.body)).parent

    def label(self, query: Stored) -> str:
        """Returns a short name of a query for lists, such as "statistic: edges"."""
        subject = query.get(self.subject) if self.subject else None
        return words(self.name) if subject is None else words(f"{self.name}: {subject}")

    def how(self, query: Stored, neighbouring: str) -> str:
        """Returns kind and mechanism of a query for histories: "tree: id3: permute_and_flip"."""
        return f"{self.name}: {self.mechanism(query, NeighbouringRelation(neighbouring))}"


def by_fields(*names: str) -> Callable[[Stored, NeighbouringRelation], str]:
    """Returns a function that joins these fields of a query into the name of its mechanism."""

    def mechanism(query: Stored, relation: NeighbouringRelation) -> str:
        del relation
        return ": ".join(str(query[name]) for name in names)

    return mechanism
