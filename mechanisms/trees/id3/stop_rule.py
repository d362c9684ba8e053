"""The stop rule: which nodes are split, by public facts and released noisy record counts.

A node with N_T noisy records is split when N_T / (t·|C|) is at least √2 / ε, the standard deviation
of the noise of a class count in a leaf at the full depth. Here t is the largest number of levels
among its remaining attributes, and |C| the number of classes: so a cell of the split holds on
average at least as many records. For Gaussian noise of σ it is split at σ in place of √2 / ε. In
whole numbers: N_T > 0 and N_T² ≥ v·(t·|C|)², where v bounds the variance of that noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isqrt

from accounting.privacy_loss import NANO
from mechanisms.model.tree_shape import MAX_NODES

#: The most class counters of all nodes that are split at one depth of the tree. They take 128 MB.
MAX_COUNTERS = 1 << 24
#: The private choice of a split among a dozen attributes takes about as long as two nodes of the
#: tree. So it counts as two nodes towards the limit on nodes.
PER_SPLIT = 2
#: The limit on the nodes of a tree is never below this, because a lower one loses accuracy. A limit
#: of 42 nodes fits the root and one attribute of 41 values. With it, the accuracy on the data set
#: adult at ε = 0.07 falls from 80.9 % to that of a single leaf. With this limit, no accuracy falls
#: on the data sets adult, acs and mushroom at ε from 0.01 to 0.07.
FEWEST_NODES = 512


def least_count(epsilon_nano: int, levels: int, classes: int) -> int:
    """The least noisy count at which a node is split, for Laplace noise at ε."""
    return least_count_of(2 * Fraction(NANO, epsilon_nano) ** 2, levels, classes)


def least_count_of(variance: Fraction, levels: int, classes: int) -> int:
    """The same for noise of this variance."""
    goal = ceil(variance * (levels * classes) ** 2)
    return max(1, isqrt(goal - 1) + 1)


def to_split(
    noisy: Sequence[int],
    levels: Sequence[int],
    classes: int,
    cells: int,
    variance: Fraction,
    room: int,
    rows: int,
) -> list[int]:
    """The numbers of the nodes of one depth that are split, ascending.

    Nodes of the largest noisy counts come first if a tree could exceed ``node_limit``, or its
    counters the memory, or if the nodes would take more rows than there may be. So the number of
    splits, and the time they take, have a public bound.

    Args:
        noisy: released record counts.
        levels: t of each node, from public facts and released splits.
        classes, cells: |C|, and the number of counters of one node.
        variance: a bound on that of the noise of a class count in a leaf at the full depth.
        room: the number of nodes that the tree may still get, with ``PER_SPLIT`` for every split.
        rows: the public bound on all rows.

    Privacy: a function of released values.
    """
    least = {t: least_count_of(variance, t, classes) for t in set(levels)}
    eligible = [i for i, count in enumerate(noisy) if count >= least[levels[i]]]
    eligible.sort(key=lambda i: (-noisy[i], i))
    unused, chosen = rows, []
    for i in eligible[: max(1, MAX_COUNTERS // cells)]:
        if unused > 0 and levels[i] + PER_SPLIT <= room:
            room -= levels[i] + PER_SPLIT
            unused -= least[levels[i]]
            chosen.append(i)
    return sorted(chosen)


def node_limit(levels: Sequence[int], classes: int, variance: Fraction, rows: int) -> int:
    """The most nodes of a tree: as many as can hold four times the noise of their class counts.

    Each split counts as ``PER_SPLIT`` nodes, so that no tree has more than ``MAX_NODES``. At least
    ``FEWEST_NODES`` always fit, and the root with one child per level of any attribute.
    """
    most = isqrt(int(Fraction(rows, 4 * classes) ** 2 / variance))
    return min(max(most, FEWEST_NODES, 1 + max(levels) + PER_SPLIT), MAX_NODES + PER_SPLIT)


def most_splits(levels: Sequence[int], classes: int, variance: Fraction, rows: int) -> list[int]:
    """Public bounds on the nodes that ``to_split`` splits at each depth, for attributes of these
    levels. So deep a node has spent one attribute per depth, at most those of most levels."""
    widest = sorted(levels, reverse=True)
    return [-(-rows // least_count_of(variance, most, classes)) for most in widest]
