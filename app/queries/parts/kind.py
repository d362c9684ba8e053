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
    #: Returns the mechanism's name for a stored query. Histories of charges are grouped by it.
    mechanism: Callable[[Stored, NeighbouringRelation], str]
    #: The parameters that the client's method takes by position, after the dataset. It takes all
    #: others by keyword.
    arguments: tuple[str, ...]
    #: The type that parses a request, for kinds with several bodies; None for the others.
    model: Any = None
    #: Returns what the page ``answer.html`` needs in addition to the answer, such as a drawing.
    draw: Callable[[Mapping[str, Any]], Any] = lambda answer: None  # noqa: ARG005 - shown as it is
    #: The parameter whose value lists of queries show beside the kind, to tell its queries apart.
    subject: str | None = None
    #: Returns the answer as columns. Files for data frames, such as CSV and Parquet, are written
    #: from them.
    columns: Callable[[Mapping[str, Any]], Columns] = plain_columns
    #: The formats in which an answer of this kind can be downloaded besides JSON, by name.
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
