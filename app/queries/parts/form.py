"""How a kind is asked on a page: which datasets it fits, its variants, and the fields of each.

A form names fields and their schemas; pages make controls of them. By default a kind has one
field per parameter of its body, so a new parameter is on the page without another line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

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


@dataclass(frozen=True)
class KindForm:
    """The form of one kind. A variant is the algorithm, the statistic or the candidates."""

    body: type[CatalogueEntry]
    #: Kinds are listed in ascending order of it.
    order: int
    #: The kinds of datasets that it fits.
    datasets: tuple[str, ...] = ("graph", "table", "prefix")
    #: The parameter that a variant fills, where there are variants.
    choice: str = ""
    #: The bodies of the variants, where each has its own.
    bodies: Mapping[str, type[CatalogueEntry]] = field(default_factory=dict)
    #: The parameters that are objects, whose fields are folded together, with their titles.
    folded: Mapping[str, str] = field(default_factory=dict)

    def fits(self, facts: Facts) -> bool:
        """True if the dataset can be asked queries of this kind."""
        return facts.kind in self.datasets and (not self.choice or bool(self.variants(facts)))

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        """The variants that fit the dataset; empty if the kind has none."""
        del facts
        bodies = self.bodies.items()
        return tuple(Option(name, body.title, body.description) for name, body in bodies)

    def start(self, variant: str) -> dict[str, Any]:
        """What the variant alone says of the query."""
        return {self.choice: variant} if self.choice else {}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        """The fields of a variant, in the order of the page: one per parameter of its body."""
        del facts
        entry = self.bodies.get(variant, self.body).catalogue()
        for name, schema in entry["parameters"].items():
            field = FormField(name, schema, name in entry["required"], entry["definitions"])
            if name in self.folded:
                inner = field.definitions[schema["$ref"].rpartition("/")[2]]["properties"]
                for part, form in inner.items():
                    path, group = f"{name}.{part}", self.folded[name]
                    yield replace(field, name=path, schema=form, group=group)
            elif name != self.choice:
                yield field

    def targets(self, variant: str) -> tuple[str, ...]:
        """The accuracies that a quote may have to reach."""
        return self.bodies.get(variant, self.body).targets
