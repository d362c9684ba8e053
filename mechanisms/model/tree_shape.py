"""The form of a decision tree as JSON, checked without recursion and without a dataset.

A node is one of
    {"label": class}                                              a leaf
    {"attribute", "branches": {level: node, …}}                   one child per level
    {"attribute", "value": level, "equal": node, "other": node}
    {"attribute", "threshold": number, "below": node, "above": node}   value ≥ threshold: above
A leaf may carry "counts", one number per class: released trees have them, evaluation ignores them.
The root has depth 0. Requests are public, so error messages may describe the fault.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 64
MAX_NODES = 4096
#: The most nodes of all trees of one request together.
MAX_TOTAL_NODES = 65_536
LARGEST = 1e308

Node = Mapping[str, Any]

LEAF = frozenset({"label"})
RELEASED_LEAF = frozenset({"label", "counts"})
BRANCHES = frozenset({"attribute", "branches"})
EQUALITY = frozenset({"attribute", "value", "equal", "other"})
THRESHOLD = frozenset({"attribute", "threshold", "below", "above"})


def children(node: Node) -> list[Any]:
    """The children of a well-formed node; those of branches are ordered by level."""
    if "branches" in node:
        return [child for _, child in sorted(node["branches"].items(), key=lambda way: way[0])]
    if "value" in node:
        return [node["equal"], node["other"]]
    return [node["below"], node["above"]] if "threshold" in node else []


def nodes(tree: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth, parents first. Raises: ValueError at the first bad node."""
    if not isinstance(tree, Mapping):
        raise ValueError("a tree is a JSON object")
    pending: list[tuple[Node, int]] = [(tree, 0)]
    seen = 1
    while pending:
        node, depth = pending.pop()
        check_node(node)
        yield node, depth
        below = children(node)
        seen += len(below)
        if below and depth == MAX_DEPTH:
            raise ValueError(f"a tree may have a depth of at most {MAX_DEPTH}")
        if seen > MAX_NODES:
            raise ValueError(f"a tree may have at most {MAX_NODES} nodes")
        pending.extend((child, depth + 1) for child in reversed(below))


def check_tree(tree: Node) -> int:
    """The number of nodes of a well-formed tree. Raises: ValueError that describes the fault."""
    return sum(1 for _ in nodes(tree))


def signature(tree: Node) -> tuple[object, ...]:
    """A value that is equal for two trees exactly if they are equal apart from counts of leaves."""
    return tuple(_node_signature(node) for node, _ in nodes(tree))


def _node_signature(node: Node) -> tuple[object, ...]:
    if "label" in node:
        return (node["label"],)
    if "branches" in node:
        return (node["attribute"], "branches", *sorted(node["branches"]))
    test = "value" if "value" in node else "threshold"
    return (node["attribute"], test, node[test])


def check_node(node: Any) -> None:
    """Raise ValueError unless ``node`` itself, without its children, has one of the four forms."""
    if not isinstance(node, Mapping):
        raise ValueError("every node of a tree is a JSON object")
    fields = node.keys()
    if fields not in (LEAF, RELEASED_LEAF, BRANCHES, EQUALITY, THRESHOLD):
        raise ValueError(
            'a node has the fields "label", or "attribute" with "branches", with "value", '
            '"equal" and "other", or with "threshold", "below" and "above"'
        )
    if "label" in fields:
        _text(node["label"], "a label")
        counts = node.get("counts", {})
        if not isinstance(counts, Mapping) or not all(map(_is_count, counts.values())):
            raise ValueError('"counts" is an object with one number per class')
        return
    _text(node["attribute"], "an attribute")
    if "branches" in fields:
        if not isinstance(node["branches"], Mapping) or not node["branches"]:
            raise ValueError('"branches" is an object with one tree per value')
        for level in node["branches"]:
            _text(level, "a value")
    elif "value" in fields:
        _text(node["value"], "a value")
    else:
        threshold = node["threshold"]
        # A threshold may be an integer too large for a double. No value of a row could be compared
        # with it, so it is refused.
        if not _is_number(threshold) or not -LARGEST <= threshold <= LARGEST:
            raise ValueError("a threshold is a finite number")


def _is_count(value: Any) -> bool:
    """True for a number, and for a released one: an object with its value and its interval."""
    if isinstance(value, Mapping):
        return "value" in value and all(map(_is_number, value.values()))
    return _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any, what: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{what} is named by a text")
