"""Decision trees as columns: a row for each class of each leaf, with the conditions above it."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.queries.parts.columns import NUMBER_ROW, Columns, number_row, of_rows
from app.queries.tree.branches import Tree, ways

#: Joins two conditions of a path from the root of a tree to a leaf.
AND = " and "


def columns(answer: Mapping[str, Any]) -> Columns:
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


def _counts(leaf: Tree) -> list[tuple[Any, ...]]:
    """The name and the number of each class; one row without them if the leaf has no counts."""
    counts = leaf.get("counts", {})
    return [(name, *number_row(count)) for name, count in counts.items()] or [(None,) * 6]
