"""Candidates of a table: its attributes, the levels of one attribute, or public models.

Lists come from the request and levels from the public domain, never from records. So a level that
no record has is a candidate like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mechanisms.model.domains import Attribute, Dataset, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.forest import Forest, forest
from mechanisms.model.tree_shape import MAX_TOTAL_NODES, check_tree, signature


@dataclass(frozen=True)
class Attributes:
    """Attributes of a table, scored by their information about a class attribute."""

    description = (
        "Attributes of a table, compared by what they say about a class attribute; a selected one "
        "comes back by its name."
    )

    names: tuple[str, ...]
    class_attribute: str
    kind: str = field(default="attributes", init=False)

    def __post_init__(self) -> None:
        check_several(len(self.names))
        if len(set(self.names)) < len(self.names):
            raise ValueError("a candidate is listed twice")
        if self.class_attribute in self.names:
            raise ValueError("the class attribute cannot be one of the candidates")

    def count(self, dataset: Dataset) -> int:
        self.attributes(dataset)
        self.classes(dataset)
        return len(self.names)

    def label(self, dataset: Dataset, index: int) -> str:
        table_domain(dataset)
        return self.names[index]

    def attributes(self, dataset: Dataset) -> tuple[Attribute, ...]:
        """The candidates as the dataset describes them; UnsupportedQuery if one is missing."""
        return tuple(attribute_named(dataset, name) for name in self.names)

    def classes(self, dataset: Dataset) -> Attribute:
        """The class attribute, which has at least two levels."""
        return class_named(dataset, self.class_attribute)


@dataclass(frozen=True)
class ValuesOf:
    """The public levels of one attribute: values, bins of numbers, and the missing level."""

    description = (
        "The public values or bins of one attribute, and its missing value; a selected one comes "
        "back as itself."
    )

    attribute: str
    kind: str = field(default="values", init=False)

    def count(self, dataset: Dataset) -> int:
        levels = len(attribute_named(dataset, self.attribute).levels)
        if levels < 2:
            raise UnsupportedQuery("a selection needs at least two candidates")
        return levels

    def label(self, dataset: Dataset, index: int) -> str:
        return attribute_named(dataset, self.attribute).levels[index]


@dataclass(frozen=True)
class Trees:
    """Public decision trees (``mechanisms.model.tree_shape``), named by their index in the list.

    Raises: ValueError for a malformed, too deep or too large tree, for fewer than two trees and for
        a repeated tree. ``count`` raises UnsupportedQuery if the trees do not fit a dataset.
    """

    description = (
        "Public decision trees, compared by their private rates; a selected one comes back as its "
        "place in the list, from 0."
    )

    trees: tuple[Mapping[str, Any], ...] = field(repr=False)
    class_attribute: str
    positive_class: str
    kind: str = field(default="trees", init=False)
    _flat: dict[TableDomain, Forest] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_several(len(self.trees))
        total = 0
        for tree in self.trees:
            total += check_tree(tree)
            if total > MAX_TOTAL_NODES:
                raise ValueError(f"all trees together may have at most {MAX_TOTAL_NODES} nodes")
        if len(set(map(signature, self.trees))) < len(self.trees):
            raise ValueError("a candidate is listed twice")

    def count(self, dataset: Dataset) -> int:
        return self.forest(dataset).trees

    def label(self, dataset: Dataset, index: int) -> int:
        table_domain(dataset)
        return index

    def forest(self, dataset: Dataset) -> Forest:
        """The trees flattened over the dataset's domain, computed once per domain."""
        domain = table_domain(dataset)
        class_named(dataset, self.class_attribute)
        flat = self._flat.get(domain)
        if flat is None:
            flat = forest(self.trees, domain, self.class_attribute, self.positive_class)
            self._flat[domain] = flat
        return flat


def table_domain(dataset: Dataset) -> TableDomain:
    """The public description of a table. Raises: UnsupportedQuery for other kinds of dataset."""
    if not isinstance(dataset.domain, TableDomain):
        raise UnsupportedQuery("only tables have attributes", supported={"kind": "table"})
    return dataset.domain


def attribute_named(dataset: Dataset, name: str) -> Attribute:
    """The attribute of a table with this name. Raises: UnsupportedQuery if there is none."""
    domain = table_domain(dataset)
    try:
        return domain.attribute(name)
    except KeyError:
        names = [attribute.name for attribute in domain.attributes]
        raise UnsupportedQuery(
            "the dataset does not have that attribute", supported={"attributes": names}
        ) from None


def class_named(dataset: Dataset, name: str) -> Attribute:
    """The class attribute with this name; it has at least two levels."""
    attribute = attribute_named(dataset, name)
    if len(attribute.levels) < 2:
        raise UnsupportedQuery("a class attribute has at least two levels")
    return attribute


def check_several(candidates: int) -> None:
    """Refuse a list of one candidate: its selection would cost loss without any choice."""
    if candidates < 2:
        raise ValueError("a selection needs at least two candidates")
