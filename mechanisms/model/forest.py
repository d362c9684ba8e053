"""Trees over a table's public domain, flattened so that 64 rows are evaluated at a time.

A *literal* is a yes-or-no question about a row: does an attribute have this level, or is its value
at least this threshold? Every inner node tests one literal. Branches over k levels become a chain
of k − 1 such nodes; the last level is what remains. Children follow their parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import Attribute, NumericAttribute, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.tree_shape import Node, children, nodes

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Column:
    """The literals of one attribute: ``count`` of them, numbered from ``first`` on.

    Without thresholds there is one literal per level, in code order. With them there is one per
    threshold, ascending.
    """

    attribute: str
    first: int
    count: int
    thresholds: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Forest:
    """Flattened trees; tree i has nodes ``starts[i]`` … ``starts[i + 1] − 1``, its root first.

    ``literal`` int32 (nodes,) is the literal that a node tests, −1 at leaves. ``yes`` and ``no``
    are the next nodes. At a leaf both are 1 for the positive class and 0 for any other.
    """

    columns: tuple[Column, ...]
    literals: int
    literal: Ints
    yes: Ints
    no: Ints
    starts: Ints
    class_attribute: str
    #: Code of the positive class in the class attribute.
    positive_code: int

    @property
    def trees(self) -> int:
        return len(self.starts) - 1


def forest(
    trees: Sequence[Node], domain: TableDomain, class_attribute: str, positive_class: str
) -> Forest:
    """Flatten trees of the form ``mechanisms.model.tree_shape`` over the attributes of ``domain``.

    Branches cover every level of their attribute, including the missing level and the bins of
    numbers. A threshold compares the clamped number of a row; a missing cell counts as the middle
    of the bounds.

    Raises: ValueError for a malformed tree. UnsupportedQuery for a tree that does not fit the
        domain: an unknown attribute, level or label, a test of the class attribute, a threshold on
        a categorical attribute, or branches that omit a level.
    """
    flattening = _Flattening(domain, class_attribute, positive_class)
    listed = [[node for node, _ in nodes(tree)] for tree in trees]
    for tree in listed:
        for node in tree:
            flattening.collect(node)
    flattening.number_literals()
    for tree in listed:
        flattening.add(tree)
    return flattening.forest()


class _Flattening:
    def __init__(self, domain: TableDomain, class_attribute: str, positive_class: str) -> None:
        self._attributes = {attribute.name: attribute for attribute in domain.attributes}
        self._codes = {
            attribute.name: {level: code for code, level in enumerate(attribute.levels)}
            for attribute in domain.attributes
        }
        if class_attribute not in self._attributes:
            raise UnsupportedQuery("the dataset does not have the class attribute")
        if positive_class not in self._codes[class_attribute]:
            raise UnsupportedQuery("the positive class is not a level of the class attribute")
        self._class, self._positive = class_attribute, positive_class
        self._by_level: set[str] = set()
        self._thresholds: dict[str, set[float]] = {}
        self._columns: list[Column] = []
        self._levels_from: dict[str, int] = {}
        self._threshold_numbers: dict[tuple[str, float], int] = {}
        self._nodes: list[tuple[int, int, int]] = []
        self._starts = [0]

    def collect(self, node: Node) -> None:
        """Check one node against the domain, and record its literal."""
        if "label" in node:
            if node["label"] not in self._codes[self._class]:
                raise UnsupportedQuery("a tree has a label that is no level of the class attribute")
            return
        attribute = self._attribute(node["attribute"])
        if "threshold" in node:
            if not isinstance(attribute, NumericAttribute):
                raise UnsupportedQuery("a threshold is for numeric attributes only")
            self._thresholds.setdefault(attribute.name, set()).add(float(node["threshold"]))
            return
        levels = self._codes[attribute.name]
        if "value" in node:
            if node["value"] not in levels:
                raise UnsupportedQuery("a tree tests a value that its attribute does not have")
        elif node["branches"].keys() != levels.keys():
            raise UnsupportedQuery("branches cover exactly the values of their attribute")
        self._by_level.add(attribute.name)

    def _attribute(self, name: str) -> Attribute:
        attribute = self._attributes.get(name)
        if attribute is None:
            raise UnsupportedQuery("a tree tests an attribute that the dataset does not have")
        if name == self._class:
            raise UnsupportedQuery("a tree may not test the class attribute")
        return attribute

    def number_literals(self) -> None:
        """Number all levels of attributes tested by level, and the thresholds in use of others."""
        first = 0
        for name in sorted(self._by_level):
            self._levels_from[name] = first
            self._columns.append(Column(name, first, len(self._codes[name])))
            first += len(self._codes[name])
        for name in sorted(self._thresholds):
            thresholds = sorted(self._thresholds[name])
            for number, threshold in enumerate(thresholds, first):
                self._threshold_numbers[name, threshold] = number
            self._columns.append(Column(name, first, len(thresholds), np.array(thresholds)))
            first += len(thresholds)
        self._literals = first

    def add(self, tree: list[Node]) -> None:
        """Append one tree; ``tree`` lists its nodes, parents first."""
        numbers: dict[int, int] = {}
        free = self._starts[-1]
        for node in tree:
            numbers[id(node)] = free
            free += max(1, len(node["branches"]) - 1) if "branches" in node else 1
        for node in tree:
            self._add(node, [numbers[id(child)] for child in children(node)])
        self._starts.append(free)

    def _add(self, node: Node, below: list[int]) -> None:
        if "label" in node:
            hit = int(node["label"] == self._positive)
            self._nodes.append((-1, hit, hit))
        elif "threshold" in node:
            literal = self._threshold_numbers[node["attribute"], float(node["threshold"])]
            self._nodes.append((literal, below[1], below[0]))
        elif "value" in node:
            name = node["attribute"]
            literal = self._levels_from[name] + self._codes[name][node["value"]]
            self._nodes.append((literal, below[0], below[1]))
        else:
            self._add_chain(
                node["attribute"], dict(zip(sorted(node["branches"]), below, strict=True))
            )

    def _add_chain(self, name: str, by_level: dict[str, int]) -> None:
        first = self._levels_from[name]
        ways = [by_level[level] for level in self._codes[name]]
        if len(ways) == 1:
            self._nodes.append((first, ways[0], ways[0]))
        for code, way in enumerate(ways[:-1]):
            rest = ways[-1] if code == len(ways) - 2 else len(self._nodes) + 1
            self._nodes.append((first + code, way, rest))

    def forest(self) -> Forest:
        table = np.array(self._nodes, dtype=np.int32).reshape(-1, 3).T.copy()
        return Forest(
            columns=tuple(self._columns),
            literals=self._literals,
            literal=table[0],
            yes=table[1],
            no=table[2],
            starts=np.array(self._starts, dtype=np.int32),
            class_attribute=self._class,
            positive_code=self._codes[self._class][self._positive],
        )
