"""Pruning by released counts: post-processing, so it costs nothing.

Leaf class counts are read clamped at 0, and a node has the sums of those below it. From the bottom
up a node whose children are all leaves becomes one itself when all of them have its label, or when
the children classify no more of its records rightly than the noise explains:
    hits(children) − hits(node) ≤ √2/ε · √(number of leaf counts),  hits = Σ max over classes,
that is, the standard deviation of the sum of the noise. Where leaves were released at different ε
their variances are added, which is the same rule. Counts of records are of the node itself only.
"""

from __future__ import annotations

from mechanisms.trees.id3.node import Node


def prune(node: Node) -> None:
    """Prune below ``node``, and the node itself; a leaf made so has sums of clamped counts."""
    if not node.children:
        return
    for child in node.children:
        prune(child)
    if any(child.children for child in node.children):
        return
    clamped = [[max(count, 0) for count in child.released] for child in node.children]
    sums = [sum(column) for column in zip(*clamped, strict=True)]
    label = sums.index(max(sums))
    variance = sum((child.variance for child in node.children), node.variance)
    gain = sum(map(max, clamped)) - max(sums)
    if all(child.label() == label for child in node.children) or gain**2 <= variance:
        node.children, node.released, node.variance = [], sums, variance
