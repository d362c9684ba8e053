"""Released decision trees: they predict classes, and print and draw themselves.

A released tree is public: predictions are free for any number of your own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Self

from privypurse.answers.answer import SUPPRESSED, Answer
from privypurse.answers.classifier import Classifier
from privypurse.answers.record_columns import RecordColumns
from privypurse.levels import Columns, Row, value_of

Node = Mapping[str, Any]
#: A released count: an object with its value and interval. A service before 0.2 sends a plain
#: number.
Count = Mapping[str, float] | int


@dataclass(frozen=True)
class Tree(Classifier):
    """One tree; ``root`` is its top node as JSON, ``columns`` the attributes that may split it."""

    root: Node
    columns: Columns

    def leaf(self, row: Row) -> Node:
        """The leaf of one row. Raises: ValueError if a value is absent or unknown."""
        node = self.root
        while "label" not in node:
            children, place = self._choice(node)
            node = children[place(value_of(row, node["attribute"]))]
        return node

    @cached_property
    def labels(self) -> list[str]:
        """All classes that leaves count or predict, ascending."""
        leaves = list(_all_leaves(self.root))
        counted = (label for leaf in leaves for label in leaf.get("counts", ()))
        return sorted({*counted, *(leaf["label"] for leaf in leaves)})

    def _label(self, row: Row) -> str:
        return str(self.leaf(row)["label"])

    def _chances(self, row: Row) -> dict[str, float]:
        """By the noisy counts of the leaf, negative ones taken as 0; uniform if none is positive.

        Raises: ValueError for trees without counts.
        """
        return probabilities(self.leaf(row))

    def _label_column(self, records: RecordColumns) -> Any:
        numbers = records.numpy.zeros(len(records), records.numpy.int64)
        for leaf, rows in self._rows_by_leaf(records):
            numbers[rows] = self.labels.index(leaf["label"])
        return self.classes_[numbers]

    def _chance_columns(self, records: RecordColumns) -> Any:
        chances = records.numpy.zeros((len(records), len(self.labels)))
        for leaf, rows in self._rows_by_leaf(records):
            of_leaf = probabilities(leaf)
            chances[rows] = [of_leaf.get(label, 0.0) for label in self.labels]
        return chances

    def _rows_by_leaf(self, records: RecordColumns) -> Iterator[tuple[Node, Any]]:
        """Each leaf that rows reach, with the numbers of these rows."""
        pending = [(self.root, records.every())]
        while pending:
            node, rows = pending.pop()
            if "label" in node:
                yield node, rows
            elif len(rows):
                children, place = self._choice(node)
                chosen = records.mapped(node["attribute"], rows, place)
                pending += [(child, rows[chosen == i]) for i, child in enumerate(children)]

    @property
    def depth(self) -> int:
        """The number of splits on the longest path."""
        return _depth(self.root)

    @property
    def leaves(self) -> int:
        return sum(1 for _ in _all_leaves(self.root))

    def __str__(self) -> str:
        """The tree as indented text, one line per branch."""
        if "label" in self.root:
            return _label(self.root)
        return "\n".join(_lines(self.root, ""))

    def _repr_html_(self) -> str:
        return _html(self.root, "")

    def _choice(self, node: Node) -> tuple[list[Node], Callable[[Any], int]]:
        """The children of a node, and which of them a value of its attribute leads to."""
        column = self.columns[node["attribute"]]
        if "branches" in node:
            levels = list(node["branches"])
            return list(node["branches"].values()), lambda value: column.position(value, levels)
        if "value" in node:
            both = [node["other"], node["equal"]]
            return both, lambda value: int(column.text(value) == node["value"])
        both = [node["below"], node["above"]]
        return both, lambda value: int(column.number(value) >= node["threshold"])


@dataclass(frozen=True)
class Trees(Answer, Classifier):
    """The trees of an answer: one from ``id3``, several from a forest or an evolutionary search.

    Together they predict the class with the largest mean probability. Trees without counts are
    alternatives to each other, so several of them predict nothing: ValueError.
    """

    trees: list[Tree]

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        trees = [Tree(root, columns) for root in reply["answer"]["trees"]]
        return cls(**cls.common(reply), trees=trees)

    @property
    def tree(self) -> Tree:
        """The first tree."""
        return self.trees[0]

    @cached_property
    def labels(self) -> list[str]:
        return sorted({label for tree in self.trees for label in tree.labels})

    def _label(self, row: Row) -> str:
        if len(self.trees) == 1:
            return self.tree._label(row)
        means = self._chances(row)
        # If several classes have the largest mean, the first in ascending order wins, as in
        # ``_label_column``.
        return max(sorted(means), key=means.__getitem__)

    def _chances(self, row: Row) -> dict[str, float]:
        votes = [tree._chances(row) for tree in self.trees]
        return {label: sum(one[label] for one in votes) / len(votes) for label in votes[0]}

    def _label_column(self, records: RecordColumns) -> Any:
        if len(self.trees) == 1:
            return self.tree._label_column(records)
        return self.classes_[self._chance_columns(records).argmax(axis=1)]

    def _chance_columns(self, records: RecordColumns) -> Any:
        return sum(tree._chance_columns(records) for tree in self.trees) / len(self.trees)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.trees))

    def _repr_html_(self) -> str:
        return "".join(tree._repr_html_() for tree in self.trees) + self._charge_line()


def probabilities(leaf: Node) -> dict[str, float]:
    """The probability of each class at a leaf, from its noisy counts; suppressed ones are 0."""
    if "counts" not in leaf:
        raise ValueError("the tree was released without counts")
    counts = {label: max(_value(count), 0) for label, count in leaf["counts"].items()}
    total = sum(counts.values())
    return {label: count / total if total else 1 / len(counts) for label, count in counts.items()}


def _branches(node: Node) -> list[tuple[str, Node]]:
    """The condition of each branch and the node below it; empty for a leaf."""
    if "branches" in node:
        return [(f"= {level}", child) for level, child in node["branches"].items()]
    if "value" in node:
        return [(f"= {node['value']}", node["equal"]), (f"≠ {node['value']}", node["other"])]
    if "threshold" in node:
        edge = f"{node['threshold']:.12g}"
        return [(f"< {edge}", node["below"]), (f"≥ {edge}", node["above"])]
    return []


def _depth(node: Node) -> int:
    return max((1 + _depth(child) for _, child in _branches(node)), default=0)


def _all_leaves(node: Node) -> Iterator[Node]:
    if "label" in node:
        yield node
    for _, child in _branches(node):
        yield from _all_leaves(child)


def _label(leaf: Node) -> str:
    if "counts" not in leaf:
        return str(leaf["label"])
    counts = ", ".join(f"{name} {_interval(count)}" for name, count in leaf["counts"].items())
    return f"{leaf['label']}  ({counts})"


def _value(count: Count) -> float:
    """The count itself, 0 if it is suppressed; a service before 0.2 sends plain numbers."""
    return (count["value"] or 0) if isinstance(count, Mapping) else count


def _interval(count: Count) -> str:
    if not isinstance(count, Mapping) or "low" not in count:
        return f"{_value(count)}"
    if count.get("suppressed"):
        return SUPPRESSED
    return f"{count['value']} [{count['low']}, {count['high']}]"


def _lines(node: Node, indent: str) -> list[str]:
    lines = []
    for condition, child in _branches(node):
        line = f"{indent}{node['attribute']} {condition}"
        if "label" in child:
            lines.append(f"{line}: {_label(child)}")
        else:
            lines += [line, *_lines(child, indent + "│   ")]
    return lines


def _html(node: Node, condition: str) -> str:
    """The subtree as nested HTML ``details`` elements, which the reader can fold."""
    if "label" in node:
        return f"<div>{escape(condition)} <b>{escape(_label(node))}</b></div>"
    inner = "".join(
        _html(child, f"{node['attribute']} {branch}") for branch, child in _branches(node)
    )
    title = escape(condition or "decision tree")
    body = f'<div style="margin-left:1.5em">{inner}</div>'
    return f"<details open><summary>{title}</summary>{body}</details>"
