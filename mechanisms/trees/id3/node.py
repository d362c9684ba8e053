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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from mechanisms.model.number import CONFIDENCE, whole_number
from mechanisms.noise.count_noise import Law, likely_error, variance
from mechanisms.trees.task import Task

#: Variances are stored in whole units of 2^−64, rounded up, because arithmetic with fractions is
#: slow.
_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """The noise of each count of a leaf: what most leaves of a depth share."""

    law: Law
    #: The noise of one class count is at most this far from 0 with probability ``CONFIDENCE``.
    error: int
    #: A bound on the variance of the noise of one class count, in units of 2^−``_BITS``.
    spread: int


@lru_cache(maxsize=1024)
def noise_of(law: Law) -> Noise:
    """The noise of this law; cached, because it takes long to find."""
    return Noise(law, likely_error({law: 1}, CONFIDENCE), ceil(variance(law) * (1 << _BITS)))


@lru_cache(maxsize=1024)
def _error_of_sum(noises: frozenset[tuple[Noise, int]]) -> int:
    """The error of a sum of so many of each noise; cached, because pruned leaves have few kinds."""
    laws: Counter[Law] = Counter()
    for noise, count in noises:
        laws[noise.law] += count
    return likely_error(laws, CONFIDENCE)


@dataclass(slots=True)
class Node:
    """A node with its attributes that are not yet used on the path.

    A leaf has ``released`` counts; an inner node has an ``attribute`` and one child per level.
    ``raw`` are the counts as their noise left them. They differ from ``released`` in a pruned node,
    which has sums of clamped counts.
    """

    remaining: tuple[int, ...]
    attribute: int = -1
    children: Sequence[Node] = ()
    released: Sequence[int] = ()
    raw: Sequence[int] = ()
    #: The noise that was added to each class count of a leaf. It is None in an inner node and in a
    #: pruned node, whose counts sum those of former leaves.
    noise: Noise | None = None
    #: A bound on the variance of the noise in one class count of ``raw``, in units of 2^−``_BITS``.
    spread: int = 0
    #: The children that a node had before it was pruned to a leaf. The sum of their noises is the
    #: noise of its counts.
    pruned: Sequence[Node] = ()

    @property
    def variance(self) -> Fraction:
        """A bound on the variance of the noise of all counts of a leaf together."""
        return Fraction(len(self.released) * self.spread, 1 << _BITS)

    def split(self, attribute: int, levels: int) -> None:
        """Add one child per level of ``attribute``."""
        self.attribute = attribute
        remaining = tuple([a for a in self.remaining if a != attribute])
        self.children = [Node(remaining) for _ in range(levels)]

    def release(self, counts: Sequence[int], noise: Noise) -> None:
        """Turn the node into a leaf with these noisy counts."""
        self.released = self.raw = counts
        self.noise, self.spread = noise, noise.spread

    def prune(self, released: Sequence[int]) -> None:
        """Turn a node whose children are leaves into a leaf with these sums of their counts."""
        self.raw = _sums([child.raw for child in self.children])
        self.spread = sum([child.spread for child in self.children])
        self.released = released
        self.children, self.pruned = (), self.children

    def numbers(self) -> list[dict[str, int]]:
        """The released counts of a leaf; the interval is of the raw count."""
        if self.noise is not None:
            error = self.noise.error
            return [whole_number(count, error) for count in self.raw]
        error = _error_of_sum(frozenset(Counter(self._noises()).items()))
        pairs = zip(self.raw, self.released, strict=True)
        return [{**whole_number(raw, error), "value": sums, "raw": raw} for raw, sums in pairs]

    def _noises(self) -> list[Noise]:
        """The noises in the sum of one raw count: of former leaves, if it is pruned."""
        noises, nodes = [], [self]
        while nodes:
            node = nodes.pop()
            if node.noise is not None:
                noises.append(node.noise)
            nodes.extend(node.pruned)
        return noises

    def label(self) -> int:
        """The class of the largest released count; the first one wins a tie."""
        return self.released.index(max(self.released))


def as_json(root: Node, task: Task) -> dict[str, Any]:
    """The nested JSON form of answers; the recursion is bounded by the public limit on depth."""
    if not root.children:
        labels = task.labels
        counts = dict(zip(labels, root.numbers(), strict=True))
        return {"label": labels[root.label()], "counts": counts}
    attribute = task.attributes[root.attribute]
    branches = zip(attribute.levels, root.children, strict=True)
    return {
        "attribute": attribute.name,
        "branches": {level: as_json(child, task) for level, child in branches},
    }


def prune(node: Node) -> None:
    """Prune below ``node``, then the node itself. A new leaf has the sums of clamped counts."""
    children = node.children
    for child in children:
        if child.children:
            prune(child)
    if not children or any(child.children for child in children):
        return
    clamped = [[count if count > 0 else 0 for count in child.released] for child in children]
    sums = _sums(clamped)
    gain = sum(map(max, clamped)) - max(sums)
    alike = {child.label() for child in children} == {sums.index(max(sums))}
    noise = len(sums) * sum([child.spread for child in children])
    if alike or gain**2 << _BITS <= noise:
        node.prune(sums)


def _sums(counts: Sequence[Sequence[int]]) -> list[int]:
    """The sum of the counts of each class."""
    return [sum(each) for each in zip(*counts, strict=True)]
