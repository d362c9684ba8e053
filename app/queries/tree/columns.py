"""Models as columns: a row for each class of each leaf of a tree, with the conditions above it.

A naive Bayes model has a row for each class, and one for each value of each attribute in a class.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.queries.parts.columns import NUMBER_ROW, Columns, number_row, of_rows
from app.queries.tree.branches import Tree, ways
from app.queries.tree.model import prior_numbers

#: Joins two conditions of a path from the root of a tree to a leaf.
AND = " and "


def columns(answer: Mapping[str, Any]) -> Columns:
    if "model" in answer:
        return of_rows(("class", "attribute", "level", *NUMBER_ROW), _counted(answer))
    rows = [
        (number, AND.join(path) or None, leaf["label"], *counted)
        for number, tree in enumerate(answer["trees"], 1)
        for path, leaf in _leaves(tree, ())
        for counted in _counts(leaf)
    ]
    return of_rows(("tree", "path", "label", "class", *NUMBER_ROW), rows)


def _leaves(node: Tree, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Tree]]:
    if "label" in node:
        yield path, node
    for condition, child in ways(node):
        yield from _leaves(child, (*path, f"{node['attribute']} {condition}"))


def _counted(answer: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The counts of the classes, then those of each attribute class by class."""
    model = answer["model"]
    for name, number in zip(model["classes"], prior_numbers(model), strict=True):
        yield name, None, None, *number_row(number)
    for attribute, one in model["attributes"].items():
        for name, row in zip(model["classes"], one["counts"], strict=True):
            for value, number in zip(one["values"], row, strict=True):
                yield name, attribute, value, *number_row(number)


def _counts(leaf: Tree) -> list[tuple[Any, ...]]:
    """The name and the number of each class; one row without them if the leaf has no counts."""
    counts = leaf.get("counts", {})
    return [(name, *number_row(count)) for name, count in counts.items()] or [(None,) * 6]
