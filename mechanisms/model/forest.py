"""Trees over a table's public domain, flattened so that 64 rows are evaluated at a time.

A *literal* is a yes-or-no question about a row: does an attribute have this level, or is its value
at least this threshold? Every inner node tests one literal. Branches over k levels become a chain
of k − 1 such nodes, because a row with none of these levels has the last one. Children come after
their parents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import NumericAttribute, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.tree_shape import Node, children, nodes

Ints = NDArray[np.int32]
#: A test whether an attribute has a level is (attribute, code of the level, None). A test whether
#: its number reaches a threshold is (attribute, −1, threshold).
Literal = tuple[str, int, float | None]
#: An inner node of a flattened tree is (number of its test, next node if yes, next node if no). A
#: leaf is (−1, c, c), where c is 1 for the positive class and 0 for any other.
FlatNode = tuple[int, int, int]


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
    #: The code of the positive class in the class attribute.
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
    for tree in [[node for node, _ in nodes(tree)] for tree in trees]:
        flattening.add(tree)
    return flattening.forest()


def numbered(
    flat: Sequence[FlatNode],
    literals: Sequence[Literal],
    starts: Sequence[int],
    levels: Mapping[str, int],
    class_attribute: str,
    positive_code: int,
) -> Forest:
    """The forest of these nodes, with literals for all levels of tested attributes, or thresholds.

    ``literals`` are distinct; ``levels`` is the number of levels of each attribute.
    """
    by_level = sorted({name for name, _, threshold in literals if threshold is None})
    groups: list[list[Literal]] = [
        [(name, code, None) for code in range(levels[name])] for name in by_level
    ]
    by_threshold = sorted(literal for literal in literals if literal[2] is not None)
    groups += [list(group) for _, group in groupby(by_threshold, key=itemgetter(0))]
    columns: list[Column] = []
    numbers: dict[Literal, int] = {}
    for group in groups:
        thresholds = [threshold for _, _, threshold in group if threshold is not None]
        edges = np.array(thresholds) if thresholds else None
        columns.append(Column(group[0][0], len(numbers), len(group), edges))
        numbers.update(zip(group, count(len(numbers)), strict=False))
    table = np.fromiter(chain.from_iterable(flat), np.int32, 3 * len(flat))
    place, yes, no = table.reshape(-1, 3).T.copy()
    # A literal is the condition that an inner node tests. Leaves have −1 in place of the number of
    # a literal. As an index, −1 selects the last element of this array, which is −1 again.
    literal = np.array([*(numbers[one] for one in literals), -1], dtype=np.int32)[place]
    return Forest(
        columns=tuple(columns),
        literals=len(numbers),
        literal=literal,
        yes=yes,
        no=no,
        starts=np.array(starts, dtype=np.int32),
        class_attribute=class_attribute,
        positive_code=positive_code,
    )


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
        self._literals: dict[Literal, int] = {}
        self._nodes: list[FlatNode] = []
        self._starts = [0]

    def add(self, tree: list[Node]) -> None:
        """Check one tree against the domain and append it; ``tree`` lists its nodes, parents
        first."""
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
            if node["label"] not in self._codes[self._class]:
                raise UnsupportedQuery("a tree has a label that is no level of the class attribute")
            hit = int(node["label"] == self._positive)
            self._nodes.append((-1, hit, hit))
            return
        name = node["attribute"]
        if name not in self._attributes:
            raise UnsupportedQuery("a tree tests an attribute that the dataset does not have")
        if name == self._class:
            raise UnsupportedQuery("a tree may not test the class attribute")
        codes = self._codes[name]
        if "threshold" in node:
            if not isinstance(self._attributes[name], NumericAttribute):
                raise UnsupportedQuery("a threshold is for numeric attributes only")
            self._test((name, -1, float(node["threshold"])), below[1], below[0])
        elif "value" in node:
            if node["value"] not in codes:
                raise UnsupportedQuery("a tree tests a value that its attribute does not have")
            self._test((name, codes[node["value"]], None), below[0], below[1])
        elif node["branches"].keys() != codes.keys():
            raise UnsupportedQuery("branches cover exactly the values of their attribute")
        else:
            by_level = dict(zip(sorted(node["branches"]), below, strict=True))
            self._add_chain(name, [by_level[level] for level in codes])

    def _add_chain(self, name: str, ways: list[int]) -> None:
        if len(ways) == 1:
            self._test((name, 0, None), ways[0], ways[0])
        for code, way in enumerate(ways[:-1]):
            rest = ways[-1] if code == len(ways) - 2 else len(self._nodes) + 1
            self._test((name, code, None), way, rest)

    def _test(self, literal: Literal, yes: int, no: int) -> None:
        self._nodes.append((self._literals.setdefault(literal, len(self._literals)), yes, no))

    def forest(self) -> Forest:
        levels = {name: len(codes) for name, codes in self._codes.items()}
        positive = self._codes[self._class][self._positive]
        literals = list(self._literals)
        return numbered(self._nodes, literals, self._starts, levels, self._class, positive)
