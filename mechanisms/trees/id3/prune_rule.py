"""Pruning by released counts: post-processing, so it costs no loss.

Class counts of leaves are clamped at 0, and a node has the sums of the counts below it. From the
bottom up, a node whose children are all leaves becomes a leaf in two cases. Either all of its
children have its label, or the noise explains the records that they additionally classify
correctly:
    hits(children) − hits(node) ≤ √2/ε · √(number of leaf counts),  hits = Σ max over classes,
that is, the standard deviation of the sum of the noise. For leaves released at different ε the
variances are added, which is the same rule.
"""

from __future__ import annotations

from mechanisms.trees.id3.node import Node


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
    variance = sum((child.variance for child in node.children), node.variance)
    gain = sum(map(max, clamped)) - max(sums)
    if all(child.label() == label for child in node.children) or gain**2 <= variance:
        node.children, node.released, node.variance = [], sums, variance
