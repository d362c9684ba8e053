"""How a kind is asked on a page: which datasets it fits, its variants, and the fields of each.

A form names fields and their schemas; pages make controls of them. By default a kind has one
field per parameter of its body, so a new parameter is on the page without another line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from app.contract.datasets import Facts
from app.queries.parts.query import CatalogueEntry


@dataclass(frozen=True)
class Option:
    """One line of a choice."""

    value: str
    title: str
    help: str = ""


@dataclass(frozen=True)
class FormField:
    """One field; ``name`` is its path in the query, such as ``distance.context``."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False
    #: The models that ``schema`` refers to.
    definitions: Mapping[str, Any] = field(default_factory=dict)
    #: ``plain``: by its schema; ``utilities``: ticked, with weights; ``where``: a condition.
    widget: Literal["plain", "utilities", "where"] = "plain"
    options: tuple[Option, ...] = ()
    #: Fields of one group are folded together under this title.
    group: str = ""


class KindForm:
    """The form of one kind. A variant is the algorithm, the statistic or the candidates."""

    body: ClassVar[type[CatalogueEntry]]
    #: Kinds are listed in ascending order of it.
    order: ClassVar[int]
    #: The kinds of datasets that it fits.
    datasets: ClassVar[frozenset[str]] = frozenset({"graph", "table", "prefix"})
    #: The name of the choice of a variant, where there is one.
    label: ClassVar[str] = ""

    def fits(self, facts: Facts) -> bool:
        """True if the dataset can be asked queries of this kind."""
        return facts.kind in self.datasets

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        """The variants that fit the dataset; empty if the kind has none."""
        del facts
        return ()

    def start(self, variant: str) -> dict[str, Any]:
        """What the variant alone says of the query."""
        del variant
        return {}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        """The fields of a variant, in the order of the page."""
        del facts, variant
        yield from parameters(self.body)

    def targets(self, variant: str) -> tuple[str, ...]:
        """The accuracies that a quote may have to reach."""
        del variant
        return ()


def parameters(body: type[CatalogueEntry]) -> Iterator[FormField]:
    """One field per parameter of a body."""
    entry = body.catalogue()
    for name, schema in entry["parameters"].items():
        yield FormField(name, schema, name in entry["required"], entry["definitions"])


def inner_fields(outer: FormField, title: str) -> Iterator[FormField]:
    """The fields of an object inside the query, folded together under ``title``."""
    inner = outer.definitions[outer.schema["$ref"].rpartition("/")[2]]
    for name, schema in inner["properties"].items():
        path = f"{outer.name}.{name}"
        yield replace(outer, name=path, schema=schema, required=False, group=title)
