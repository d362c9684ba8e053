"""Average linkage clustering, which turns a matrix of distances between values into a tree.

Privacy: it costs no loss, because the matrix is an answer that was already released.
Source: Sokal and Michener 1958 (UPGMA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A leaf that holds the index ``value``, at height 0, or two nodes joined at ``height``."""

    height: float
    value: int = -1
    left: Node | None = None
    right: Node | None = None

    def order(self) -> list[int]:
        """Returns the values of all leaves below this node, from left to right."""
        if self.left is None or self.right is None:
            return [self.value]
        return self.left.order() + self.right.order()


def average_linkage(matrix: Sequence[Sequence[float]]) -> Node:
    """Joins the two closest groups until one is left, and of equal pairs the first one.

    Args:
        matrix: symmetric distances, shape (n, n), n ≥ 1.
    """
    nodes: dict[int, Node] = {i: Node(0.0, i) for i in range(len(matrix))}
    sizes = dict.fromkeys(nodes, 1)
    apart = {(i, j): float(matrix[i][j]) for j in nodes for i in range(j)}
    free = len(matrix)
    while len(nodes) > 1:
        (i, j), height = min(apart.items(), key=lambda pair: pair[1])
        joined = Node(height, -1, nodes.pop(i), nodes.pop(j))
        for other in nodes:
            first, second = (min(i, other), max(i, other)), (min(j, other), max(j, other))
            mean = (sizes[i] * apart[first] + sizes[j] * apart[second]) / (sizes[i] + sizes[j])
            apart[(other, free)] = mean
        apart = {pair: d for pair, d in apart.items() if i not in pair and j not in pair}
        nodes[free], sizes[free] = joined, sizes[i] + sizes[j]
        free += 1
    return next(iter(nodes.values()))
