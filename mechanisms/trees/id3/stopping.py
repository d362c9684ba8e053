"""Which nodes are split: a public rule on noisy record counts that are paid for.

A node with N_T noisy records is split when N_T / (t·|C|) is at least √2 / ε, the standard
deviation of the noise of a count: t is the largest number of levels of an attribute left to it,
|C| the number of classes. In whole numbers, with ε = E / 10⁹: N_T > 0 and
(N_T·E)² ≥ 2·(t·|C|·10⁹)².
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from accounting.privacy_loss import NANO
from mechanisms.model.tree_shape import MAX_NODES

#: Counters of all nodes that are split at one level of the tree together, 128 MB of them.
MAX_COUNTERS = 1 << 24


def least_count(epsilon_nano: int, levels: int, classes: int) -> int:
    """The least noisy count with which a node is split."""
    goal = 2 * (levels * classes * NANO) ** 2
    root = isqrt(goal - 1) + 1  # the least whole number whose square reaches the goal
    return max(1, -(-root // epsilon_nano))


def to_split(
    noisy: Sequence[int],
    levels: Sequence[int],
    classes: int,
    cells: int,
    epsilon_nano: int,
    nodes: int,
) -> list[int]:
    """The numbers of the nodes of one depth that are split, ascending.

    Args:
        noisy: released record counts.
        levels: t of each node, from public facts and released splits.
        classes, cells: |C|, and how many counters one node has.
        nodes: how many nodes the tree has by now.

    Where a tree could outgrow ``MAX_NODES``, or its counters the memory, nodes of the largest
    noisy counts go first. Privacy: a function of released values.
    """
    least = {t: least_count(epsilon_nano, t, classes) for t in set(levels)}
    wanted = [i for i, count in enumerate(noisy) if count >= least[levels[i]]]
    wanted.sort(key=lambda i: (-noisy[i], i))
    room, chosen = MAX_NODES - nodes, []
    for i in wanted[: max(1, MAX_COUNTERS // cells)]:
        if levels[i] <= room:
            room -= levels[i]
            chosen.append(i)
    return sorted(chosen)
