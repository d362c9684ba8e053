"""The texts of a decision tree's nodes, which every format shows: branches and leaf labels."""

from collections.abc import Mapping
from typing import Any

Tree = Mapping[str, Any]


def ways(node: Tree) -> list[tuple[str, Tree]]:
    """Returns the branches of an inner node as pairs of condition and subtree; none for a leaf."""
    if "branches" in node:
        return [(f"= {level}", child) for level, child in node["branches"].items()]
    if "value" in node:
        value = node["value"]
        return [(f"= {value}", node["equal"]), (f"≠ {value}", node["other"])]
    if "threshold" in node:
        edge = f"{node['threshold']:.12g}"
        return [(f"< {edge}", node["below"]), (f"≥ {edge}", node["above"])]
    return []


def label(leaf: Tree) -> str:
    """Returns the class of a leaf with its noisy counts, if any: "yes  (yes 120, no 14)"."""
    if "counts" not in leaf:
        return str(leaf["label"])
    counts = ", ".join(f"{name} {count}" for name, count in leaf["counts"].items())
    return f"{leaf['label']}  ({counts})"
