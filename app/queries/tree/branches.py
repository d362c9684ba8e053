"""The texts of a decision tree's nodes, which every format shows: branches and leaf labels."""

from collections.abc import Callable, Mapping
from typing import Any

Tree = Mapping[str, Any]
#: A released count: an object with its interval, or a plain number in answers of earlier releases.
Count = Mapping[str, float] | int


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
    return _labelled(leaf, lambda count: f"{value_of(count)}")


def label_with_intervals(leaf: Tree) -> str:
    """Returns the same with the interval of each count: "yes  (yes 120 [101, 139])"."""
    return _labelled(leaf, _interval)


def intervals(counts: Mapping[str, Count]) -> str:
    """Returns each name with its count and interval: "yes 120 [101, 139], no 14 [0, 33]"."""
    return ", ".join(f"{name} {_interval(count)}" for name, count in counts.items())


def value_of(count: Count) -> float | str:
    """Returns the count itself, or "suppressed"; answers of earlier versions hold plain numbers."""
    if not isinstance(count, Mapping):
        return count
    return "suppressed" if count.get("suppressed") else count["value"]


def _labelled(leaf: Tree, text: Callable[[Count], str]) -> str:
    if "counts" not in leaf:
        return str(leaf["label"])
    counts = ", ".join(f"{name} {text(count)}" for name, count in leaf["counts"].items())
    return f"{leaf['label']}  ({counts})"


def _interval(count: Count) -> str:
    if not isinstance(count, Mapping) or "low" not in count or count.get("suppressed"):
        return f"{value_of(count)}"
    return f"{count['value']} [{count['low']}, {count['high']}]"
