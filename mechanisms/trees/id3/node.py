"""A node of a private tree while it grows, pruning, and the released form.

Pruning reads released counts: it is post-processing, so it costs no loss. Class counts of leaves
are clamped at 0, and a node has the sums of the counts below it. From the bottom up, a node whose
children are all leaves becomes a leaf in two cases. Either all of its children have its label, or
the noise explains the records that they additionally classify correctly:
    hits(children) − hits(node) ≤ √2/ε · √(number of leaf counts),  hits = Σ max over classes,
that is, the standard deviation of the sum of the noise. For leaves released at different ε, or
with Gaussian noise, the variances are added, which is the same rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mechanisms.model.number import CONFIDENCE, Number
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.count_noise import Law, likely_error, variance
from mechanisms.trees.task import Task


@dataclass
class Node:
    """A node with its attributes that are not yet used on the path, and private class ``counts``.

    A leaf has ``released`` counts; an inner node has an ``attribute`` and one child per level.
    ``raw`` are the counts as their noise left them. They differ from ``released`` in a pruned node,
    which has sums of clamped counts.
    """

    remaining: tuple[int, ...]
    counts: Integers = field(repr=False)
    attribute: int = -1
    children: list[Node] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    raw: list[int] = field(default_factory=list)
    #: For each law of noise, the number of its draws in one raw count. In a pruned node there are
    #: several, because a raw count is then a sum of noisy counts of former leaves.
    noises: dict[Law, int] = field(default_factory=dict)
    pruned: bool = False

    @property
    def variance(self) -> Fraction:
        """A bound on the variance of the noise of all counts of a leaf together."""
        return _variance(tuple(self.noises.items()), len(self.released))

    def split(self, attribute: int, table: Integers) -> None:
        """Add one child per level of ``attribute``, with the class counts of the level."""
        self.attribute = attribute
        remaining = tuple(a for a in self.remaining if a != attribute)
        self.children = [Node(remaining, counts) for counts in table]

    def release(self, counts: Sequence[int], law: Law) -> None:
        """Turn the node into a leaf with these noisy counts, whose noise has this law."""
        self.released, self.raw, self.noises = list(counts), list(counts), {law: 1}

    def prune(self, released: Sequence[int], noises: dict[Law, int]) -> None:
        """Turn a node whose children are leaves into a leaf with these sums of their counts."""
        self.raw = [sum(each) for each in zip(*(child.raw for child in self.children), strict=True)]
        self.noises, self.released = noises, list(released)
        self.children, self.pruned = [], True

    def numbers(self) -> list[Number]:
        """The released counts of a leaf; the interval is of the raw count."""
        error = _error(tuple(self.noises.items()))
        raw = [Number.around(count, error) for count in self.raw]
        if not self.pruned:
            return raw
        pairs = zip(self.released, raw, strict=True)
        return [Number(sums, one.low, one.high, one.value) for sums, one in pairs]

    def label(self) -> int:
        """The class of the largest released count; the first one wins a tie."""
        return self.released.index(max(self.released))


def as_json(root: Node, task: Task) -> dict[str, Any]:
    """The nested JSON form of answers; the recursion is bounded by the public limit on depth."""
    if not root.children:
        counts = zip(task.labels, root.numbers(), strict=True)
        shapes = {label: number.as_dict() for label, number in counts}
        return {"label": task.labels[root.label()], "counts": shapes}
    attribute = task.attributes[root.attribute]
    branches = zip(attribute.levels, root.children, strict=True)
    return {
        "attribute": attribute.name,
        "branches": {level: as_json(child, task) for level, child in branches},
    }


def prune(node: Node) -> None:
    """Prune below ``node``, then the node itself. A new leaf has the sums of clamped counts."""
    if not node.children:
        return
    for child in node.children:
        prune(child)
    if any(child.children for child in node.children):
        return
    clamped = [[max(count, 0) for count in child.released] for child in node.children]
    sums = [sum(column) for column in zip(*clamped, strict=True)]
    label = sums.index(max(sums))
    noises = _added(node.children)
    whole = _variance(tuple(noises.items()), len(sums))
    gain = sum(map(max, clamped)) - max(sums)
    if all(child.label() == label for child in node.children) or gain**2 <= whole:
        node.prune(sums, noises)


def _added(leaves: Iterable[Node]) -> dict[Law, int]:
    """For each law, the number of noise draws in the sum of one raw count of each leaf."""
    noises: Counter[Law] = Counter()
    for leaf in leaves:
        for law, draws in leaf.noises.items():
            noises[law] += draws
    return noises


# Both are cached, because most nodes of a tree have the same noise, and both take long.
@lru_cache(maxsize=1024)
def _error(noises: tuple[tuple[Law, int], ...]) -> int:
    return likely_error(dict(noises), CONFIDENCE)


@lru_cache(maxsize=1024)
def _variance(noises: tuple[tuple[Law, int], ...], counts: int) -> Fraction:
    each = (draws * variance(law) for law, draws in noises)
    return counts * sum(each, Fraction(0))
