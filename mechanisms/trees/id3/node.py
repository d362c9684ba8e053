"""A node of a private tree while it grows, and what is shown of it."""

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
    """``left``: the attributes that the path has not used; ``counts``: private, a number a class.

    A leaf has ``released`` counts; an inner node has an ``attribute`` and a child a level.
    """

    left: tuple[int, ...]
    counts: Integers = field(repr=False)
    attribute: int = -1
    children: list[Node] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    #: The variance of the noise of all leaf counts below: 2/ε² a count, at most.
    variance: Fraction = Fraction(0)

    def split(self, attribute: int, table: Integers) -> None:
        """One child a level of ``attribute``, with the level's class counts."""
        self.attribute = attribute
        left = tuple(a for a in self.left if a != attribute)
        self.children = [Node(left, counts) for counts in table]

    def release(self, counts: Sequence[int], epsilon_nano: int) -> None:
        """Make it a leaf with these noisy counts."""
        self.released = list(counts)
        self.variance = len(counts) * 2 * Fraction(NANO, epsilon_nano) ** 2

    def label(self) -> int:
        """The class of the largest released count, the first one among equals."""
        return self.released.index(max(self.released))


def as_json(root: Node, task: Task) -> dict[str, Any]:
    """The nested form of the contract; no deeper than the public limit on depth."""
    if not root.children:
        counts = dict(zip(task.labels, root.released, strict=True))
        return {"label": task.labels[root.label()], "counts": counts}
    attribute = task.attributes[root.attribute]
    branches = zip(attribute.levels, root.children, strict=True)
    return {
        "attribute": attribute.name,
        "branches": {level: as_json(child, task) for level, child in branches},
    }
