"""The form of a query kind on a page: the datasets it fits, its variants, and their fields.

A form lists fields with their JSON schemas, and the pages turn them into controls. By default a
form has one field per parameter of the query's body, so a new parameter appears on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from app.contract.datasets import Facts
from app.queries.parts.query import CatalogueEntry

#: The title under which the page folds parameters that have good defaults.
ADVANCED = "Advanced"


@dataclass(frozen=True)
class Option:
    """One option of a list from which a person chooses on a page."""

    value: str
    title: str
    help: str = ""


@dataclass(frozen=True)
class FormField:
    """One field of a form. ``name`` is its path in the query, such as ``distance.context``."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False
    #: The definitions of models that ``schema`` refers to, by name.
    definitions: Mapping[str, Any] = field(default_factory=dict)
    #: How the page shows the field. ``plain`` follows the schema, ``utilities`` shows tick boxes
    #: with weights, and ``where`` edits a condition on records. ``groups`` chooses attributes as
    #: rows and columns of a table. ``measures`` chooses what its cells show, from ``options``
    #: written as "name:attribute".
    widget: Literal["plain", "utilities", "where", "groups", "measures"] = "plain"
    options: tuple[Option, ...] = ()
    #: The page folds all fields of one group together under this title.
    group: str = ""


@dataclass(frozen=True)
class KindForm:
    """The form of a query kind. A variant is an algorithm, a statistic or a kind of candidates."""

    body: type[CatalogueEntry]
    #: The position of the kind in lists, which are in ascending order of this number.
    order: int
    #: The kinds of datasets on which this kind of query can run.
    datasets: tuple[str, ...] = ("graph", "table", "prefix")
    #: The name of the parameter that holds the variant; empty if the kind has no variants.
    choice: str = ""
    #: The body of the query for each variant, if the variants have different bodies.
    bodies: Mapping[str, type[CatalogueEntry]] = field(default_factory=dict)
    #: Parameters that are objects: the page folds the fields of each under this title.
    folded: Mapping[str, str] = field(default_factory=dict)
    #: Parameters that the page folds under ``ADVANCED``, because most users keep the defaults.
    advanced: tuple[str, ...] = ()

    def fits(self, facts: Facts) -> bool:
        """True if this kind of query can run on the dataset."""
        return facts.kind in self.datasets and (not self.choice or bool(self.variants(facts)))

    def variants(self, facts: Facts) -> tuple[Option, ...]:
        """Returns the variants that fit the dataset; empty if the kind has none."""
        del facts
        bodies = self.bodies.items()
        return tuple(Option(name, body.title, body.description) for name, body in bodies)

    def start(self, variant: str) -> dict[str, Any]:
        """Returns the fields of the query that the choice of this variant determines."""
        return {self.choice: variant} if self.choice else {}

    def fields(self, facts: Facts, variant: str) -> Iterator[FormField]:
        """Yields the fields of a variant in page order: by default each parameter of its body."""
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
                yield replace(field, group=ADVANCED) if name in self.advanced else field

    def gaussian(self, variant: str) -> bool:
        """Returns whether queries of a variant may name ``rho``."""
        return self.bodies.get(variant, self.body).gaussian

    def targets(self, variant: str) -> tuple[str, ...]:
        """Returns the names of the accuracies that a request for a quote may set as targets."""
        return self.bodies.get(variant, self.body).targets
