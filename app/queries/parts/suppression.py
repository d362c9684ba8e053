"""Suppresses released counts below the minimum of a dataset, as its owner's policy.

Danger: this protects nobody, the noise does. It is a policy on released numbers, and reads no
record.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mechanisms.model.domains import Dataset

#: The members of a released number that become null if the number is suppressed.
ENDS = ("value", "low", "high", "raw")
#: A count is suppressed if one of these is below the minimum count: the value shown, or the noisy
#: value before an adjustment.
_JUDGED = ("value", "raw")


def number(shape: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Returns a released count; null with ``suppressed`` where it is below the minimum."""
    least = dataset.minimum_count
    if not least or all(shape.get(end, least) >= least for end in _JUDGED):
        return dict(shape)
    return suppressed(shape)


def suppressed(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a released number without its value and the ends of its interval."""
    return {**shape, **{end: None for end in ENDS if end in shape}, "suppressed": True}


def numbers(lists: Mapping[str, Sequence[Any]], dataset: Dataset) -> dict[str, list[Any]]:
    """Returns released counts as lists, null where ``suppressed``, which is a list then."""
    if not dataset.minimum_count:
        return {name: list(values) for name, values in lists.items()}
    marks = [value < dataset.minimum_count for value in lists["value"]]
    columns = {
        name: [None if mark else value for value, mark in zip(values, marks, strict=True)]
        for name, values in lists.items()
    }
    return {**columns, "suppressed": marks}


def leaf_counts(tree: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Returns a released tree; the counts of its leaves are null where they are ``suppressed``.

    The recursion is bounded by the public limit on the depth of trees.
    """
    if not dataset.minimum_count:
        return dict(tree)
    if "branches" in tree:
        below = {level: leaf_counts(one, dataset) for level, one in tree["branches"].items()}
        return {**tree, "branches": below}
    counts = {label: number(one, dataset) for label, one in tree["counts"].items()}
    return {**tree, "counts": counts}
