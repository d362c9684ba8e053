"""What a private tree is grown from: attributes to ask, a class to tell; public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from mechanisms.model.domains import Attribute, Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import attribute_named, class_named, table_domain
from mechanisms.model.tree_shape import MAX_NODES

#: A node with one child a level must fit into one tree, its root included.
MAX_LEVELS = MAX_NODES - 1
#: Counters of one node: levels of all attributes times classes.
MAX_CELLS = 1 << 20


@dataclass(frozen=True)
class Task:
    """Attributes in the order of the request or the domain, and the class attribute."""

    attributes: tuple[Attribute, ...]
    classes: Attribute

    @classmethod
    def of(cls, dataset: Dataset, names: Sequence[str] | None, class_name: str) -> Self:
        """The task over a dataset's domain; without ``names`` all attributes but the class.

        Raises: UnsupportedQuery for a dataset that is no table, an attribute it does not have,
            a class attribute of one level or among the attributes, an attribute listed twice or
            with too many levels for a tree or two of one name, and when there is none to ask.
        """
        classes = class_named(dataset, class_name)
        if names is None:
            names = [a.name for a in table_domain(dataset).attributes if a.name != class_name]
        if not names:
            raise UnsupportedQuery("a tree needs an attribute beside its class")
        if class_name in names:
            raise UnsupportedQuery("the class attribute cannot be one that the tree asks")
        if len(set(names)) < len(names):
            raise UnsupportedQuery("an attribute is listed twice")
        attributes = tuple(attribute_named(dataset, name) for name in names)
        if max(len(attribute.levels) for attribute in attributes) > MAX_LEVELS:
            raise UnsupportedQuery(
                "an attribute has too many levels for a tree", supported={"levels": MAX_LEVELS}
            )
        if any(len(set(a.levels)) < len(a.levels) for a in (*attributes, classes)):
            raise UnsupportedQuery("two levels of an attribute have the same name")
        task = cls(attributes, classes)
        if task.cells > MAX_CELLS:
            raise UnsupportedQuery(
                "the attributes have too many levels for so many classes",
                supported={"levels_times_classes": MAX_CELLS},
            )
        return task

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many public levels each attribute has: values or bins, and the missing one."""
        return tuple(len(attribute.levels) for attribute in self.attributes)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in code order."""
        return self.classes.levels

    @property
    def cells(self) -> int:
        """How many counters one node has."""
        return sum(self.levels) * len(self.labels)
