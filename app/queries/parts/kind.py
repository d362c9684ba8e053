"""What a query kind is to the rest of the service: one value, ``KIND``, of one folder.

Routes, pages, snippets, documentation and warm-up read these fields and know no kind by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getfile
from pathlib import Path
from typing import Any

from app.queries.parts.examples import Examples
from app.queries.parts.form import KindForm
from app.queries.parts.query import CatalogueEntry
from app.queries.parts.sentences import words
from mechanisms.model.domains import NeighbouringRelation

#: A stored query, in the form that requests are stored in.
Stored = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """A media type, and the text that it makes of an answer."""

    media_type: str
    write: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Kind:
    """One query kind."""

    form: KindForm
    examples: Examples
    #: By what a history groups its queries: how the answer was made, after the name of the kind.
    mechanism: Callable[[Stored, NeighbouringRelation], str]
    #: The arguments of the client's call after the dataset; all others are keywords.
    arguments: tuple[str, ...]
    #: The type that requests are read into, where several bodies make one kind.
    model: Any = None
    #: What ``answer.html`` shows of an answer, beside the answer itself.
    draw: Callable[[Mapping[str, Any]], Any] = lambda answer: None  # noqa: ARG005 - shown as it is
    #: The parameter that lists of queries show beside the name of the kind.
    subject: str | None = None
    #: Further formats of an answer, by name.
    formats: Mapping[str, Format] = field(default_factory=dict)

    @property
    def body(self) -> type[CatalogueEntry]:
        """The entry of the catalogue: name, title, description, parameters."""
        return self.form.body

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def folder(self) -> Path:
        """The folder of the kind, with ``answer.html``."""
        return Path(getfile(self.body)).parent

    def label(self, query: Stored) -> str:
        """A query in few words, for lists: "statistic: edges"."""
        subject = query.get(self.subject) if self.subject else None
        return words(self.name) if subject is None else words(f"{self.name}: {subject}")

    def how(self, query: Stored, neighbouring: str) -> str:
        """The kind and the mechanism of a query, for histories: "tree: id3: permute_and_flip"."""
        return f"{self.name}: {self.mechanism(query, NeighbouringRelation(neighbouring))}"


def by_fields(*names: str) -> Callable[[Stored, NeighbouringRelation], str]:
    """A mechanism that fields of the query name."""

    def mechanism(query: Stored, relation: NeighbouringRelation) -> str:
        del relation
        return ": ".join(str(query[name]) for name in names)

    return mechanism
