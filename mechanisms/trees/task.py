"""The task of a private tree: attributes to test and a class to predict; public facts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from mechanisms.model.domains import Attribute, Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import attribute_named, class_named, table_domain
from mechanisms.model.tree_shape import MAX_NODES

#: The most values of an attribute: the root and one child per value must fit into one tree.
MAX_LEVELS = MAX_NODES - 1
#: The most counters of one node: one for each class at each value of every attribute.
MAX_CELLS = 1 << 20


@dataclass(frozen=True)
class Task:
    """Attributes in the order of the request or the domain, and the class attribute."""

    attributes: tuple[Attribute, ...]
    classes: Attribute

    @classmethod
    def of(cls, dataset: Dataset, names: Sequence[str] | None, class_name: str) -> Self:
        """The task over a dataset's domain; without ``names`` all attributes except the class.

        Raises: UnsupportedQuery when the dataset is no table or lacks an attribute, when there is
            no attribute to test, and when an attribute is listed twice, has too many levels for a
            tree or two levels of one name. Likewise for a class attribute of one level or among the
            attributes.
        """
        classes = class_named(dataset, class_name)
        if names is None:
            names = [a.name for a in table_domain(dataset).attributes if a.name != class_name]
        if not names:
            raise UnsupportedQuery("a tree needs an attribute beside its class")
        if class_name in names:
            raise UnsupportedQuery("the class attribute cannot be an attribute of the tree")
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
        """The number of public levels of each attribute: values or bins, and the missing level."""
        return tuple(len(attribute.levels) for attribute in self.attributes)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in code order."""
        return self.classes.levels

    @property
    def cells(self) -> int:
        """The number of counters of one node."""
        return sum(self.levels) * len(self.labels)
