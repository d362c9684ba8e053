"""Released decision trees: they predict classes, and print and draw themselves.

A released tree is public: predictions are free for any number of your own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self, overload

from privypurse.answers import SUPPRESSED, Answer
from privypurse.levels import Columns, Row, rows_of, value_of

Node = Mapping[str, Any]
#: A released count: an object with its value and interval. A service before 0.2 sends a plain
#: number.
Count = Mapping[str, float] | int


@dataclass(frozen=True)
class Tree:
    """One tree; ``root`` is its top node as JSON, ``columns`` the attributes that may split it."""

    root: Node
    columns: Columns

    def leaf(self, row: Row) -> Node:
        """The leaf of one row. Raises: ValueError if a value is absent or unknown."""
        node = self.root
        while "label" not in node:
            node = self._below(node, value_of(row, node["attribute"]))
        return node

    @overload
    def predict(self, rows: Row) -> str: ...
    @overload
    def predict(self, rows: Sequence[Row]) -> list[str]: ...
    @overload
    def predict(self, rows: Any) -> Any: ...
    def predict(self, rows: Any) -> Any:
        """The class of one row, or of each row of a sequence or a data frame."""
        if isinstance(rows, Mapping):
            return self.leaf(rows)["label"]
        return [self.leaf(row)["label"] for row in rows_of(rows)]

    @overload
    def predict_proba(self, rows: Row) -> dict[str, float]: ...
    @overload
    def predict_proba(self, rows: Sequence[Row]) -> list[dict[str, float]]: ...
    @overload
    def predict_proba(self, rows: Any) -> Any: ...
    def predict_proba(self, rows: Any) -> Any:
        """Class probabilities by the noisy counts of the leaf, negative counts taken as 0.

        Uniform if no count is positive. Raises: ValueError for trees without counts.
        """
        if isinstance(rows, Mapping):
            return probabilities(self.leaf(rows))
        return [probabilities(self.leaf(row)) for row in rows_of(rows)]

    @property
    def depth(self) -> int:
        """The number of splits on the longest path."""
        return _depth(self.root)

    @property
    def leaves(self) -> int:
        return _leaves(self.root)

    def __str__(self) -> str:
        """The tree as indented text, one line per branch."""
        if "label" in self.root:
            return _label(self.root)
        return "\n".join(_lines(self.root, ""))

    def _repr_html_(self) -> str:
        return _html(self.root, "")

    def _below(self, node: Node, value: object) -> Node:
        column = self.columns[node["attribute"]]
        below: Node
        if "branches" in node:
            levels = list(node["branches"])
            below = node["branches"][levels[column.position(value, levels)]]
        elif "value" in node:
            below = node["equal" if column.text(value) == node["value"] else "other"]
        else:
            below = node["above" if column.number(value) >= node["threshold"] else "below"]
        return below


@dataclass(frozen=True)
class Trees(Answer):
    """The trees of an answer: one from ``id3``, several from a forest or an evolutionary search."""

    trees: list[Tree]

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        trees = [Tree(root, columns) for root in reply["answer"]["trees"]]
        return cls(**cls.common(reply), trees=trees)

    @property
    def tree(self) -> Tree:
        """The first tree."""
        return self.trees[0]

    @overload
    def predict(self, rows: Row) -> str: ...
    @overload
    def predict(self, rows: Sequence[Row]) -> list[str]: ...
    @overload
    def predict(self, rows: Any) -> Any: ...
    def predict(self, rows: Any) -> Any:
        """The class with the largest mean probability over all trees, of one row or of each row.

        Raises: ValueError for several trees without counts, which are alternatives to each other.
        """
        if len(self.trees) == 1:
            return self.tree.predict(rows)
        if isinstance(rows, Mapping):
            means = self.predict_proba(rows)
            return max(means, key=means.__getitem__)
        return [self.predict(row) for row in rows_of(rows)]

    @overload
    def predict_proba(self, rows: Row) -> dict[str, float]: ...
    @overload
    def predict_proba(self, rows: Sequence[Row]) -> list[dict[str, float]]: ...
    @overload
    def predict_proba(self, rows: Any) -> Any: ...
    def predict_proba(self, rows: Any) -> Any:
        """The mean of the class probabilities of all trees. Raises: ValueError without counts."""
        if not isinstance(rows, Mapping):
            return [self.predict_proba(row) for row in rows_of(rows)]
        votes = [tree.predict_proba(rows) for tree in self.trees]
        return {label: sum(one[label] for one in votes) / len(votes) for label in votes[0]}

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


def _leaves(node: Node) -> int:
    return sum(_leaves(child) for _, child in _branches(node)) or 1


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
