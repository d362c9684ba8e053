"""A node of a private tree while it grows, and its released form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from accounting.privacy_loss import NANO
from mechanisms.model.sensitivity import Integers
from mechanisms.trees.task import Task


@dataclass
class Node:
    """``remaining``: the attributes not used on the path; ``counts``: private, one per class.

    A leaf has ``released`` counts; an inner node has an ``attribute`` and one child per level.
    """

    remaining: tuple[int, ...]
    counts: Integers = field(repr=False)
    attribute: int = -1
    children: list[Node] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    #: The variance of the noise of all leaf counts below: at most 2/ε² per count.
    variance: Fraction = Fraction(0)

    def split(self, attribute: int, table: Integers) -> None:
        """Add one child per level of ``attribute``, with the class counts of the level."""
        self.attribute = attribute
        remaining = tuple(a for a in self.remaining if a != attribute)
        self.children = [Node(remaining, counts) for counts in table]

    def release(self, counts: Sequence[int], epsilon_nano: int) -> None:
        """Turn the node into a leaf with these noisy counts."""
        self.released = list(counts)
        self.variance = len(counts) * 2 * Fraction(NANO, epsilon_nano) ** 2

    def label(self) -> int:
        """The class of the largest released count; the first one wins a tie."""
        return self.released.index(max(self.released))


def as_json(root: Node, task: Task) -> dict[str, Any]:
    """The nested JSON form of answers; the recursion is bounded by the public limit on depth."""
    if not root.children:
        counts = dict(zip(task.labels, root.released, strict=True))
        return {"label": task.labels[root.label()], "counts": counts}
    attribute = task.attributes[root.attribute]
    branches = zip(attribute.levels, root.children, strict=True)
    return {
        "attribute": attribute.name,
        "branches": {level: as_json(child, task) for level, child in branches},
    }
