"""The forest of diffprivlib 0.6 as a rival: its algorithm and its defaults, on public bounds.

Its faults, each named in the documentation as well:

* The tree of a record follows from its row: row i of n goes to tree ⌊i·T/n⌋. A record more or
  less moves the border between any two trees, so a change reaches up to T trees, each at the whole
  of ε. The charge states ε alone.
* A replacement moves two counts of a leaf in opposite directions, or two leaves. Its labels are
  drawn as if counts moved one way, at half that noise.
* Tests are thresholds at random places of codes: an order of categories that means nothing, with
  branches that no record can reach. A leaf is a label without counts, so votes are unweighted.
* Draws are of NumPy and floats. Without ``bounds`` and ``classes`` it reads them from the records.

Source: diffprivlib 0.6.6, ``models/forest.py``; Fletcher and Islam 2017.
"""

import numpy as np
from numpy.typing import NDArray

TREES, DEPTH = 10, 5
Codes = NDArray[np.int64]


def predictions(
    codes: Codes,
    classes: Codes,
    held_out: Codes,
    levels: tuple[int, ...],
    labels: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Codes:
    """The predicted class of every row held out, shape (rows,).

    Args:
        codes: the level of each attribute, (rows, attributes), in [0, levels).
        classes: the class of each row, in [0, labels).
        held_out: as ``codes``, of other rows.
    """
    tree_of_row = trees_of_rows(len(codes))
    votes = np.zeros((len(held_out), labels))
    for tree in range(TREES):
        features, thresholds = random_tests(levels, rng)
        mine = tree_of_row == tree
        leaves = leaf_of(codes[mine], features, thresholds)
        counts = np.zeros((1 << DEPTH, labels))
        np.add.at(counts, (leaves, classes[mine]), 1)
        chosen = permute_and_flip(counts, epsilon, rng)
        votes[np.arange(len(held_out)), chosen[leaf_of(held_out, features, thresholds)]] += 1
    return votes.argmax(axis=1)


def trees_of_rows(rows: int) -> Codes:
    """The tree that each row is counted in."""
    return (np.arange(rows) // (rows / TREES)).astype(np.int64)


def random_tests(
    levels: tuple[int, ...], rng: np.random.Generator
) -> tuple[Codes, NDArray[np.float64]]:
    """The attribute and the threshold of every inner node of a full tree, in heap order."""
    inner = (1 << DEPTH) - 1
    features, thresholds = np.empty(inner, np.int64), np.empty(inner)
    top = np.array(levels, float) - 1
    boxes = {0: (np.zeros(len(levels)), top)}
    for node in range(inner):
        low, high = boxes.pop(node)
        features[node] = one = int(rng.integers(len(levels)))
        thresholds[node] = at = rng.uniform(low[one], high[one])
        below, above = high.copy(), low.copy()
        below[one] = above[one] = at
        boxes[2 * node + 1], boxes[2 * node + 2] = (low, below), (above, high)
    return features, thresholds


def leaf_of(codes: Codes, features: Codes, thresholds: NDArray[np.float64]) -> Codes:
    """The leaf of every row, in [0, 2^DEPTH)."""
    node = np.zeros(len(codes), np.int64)
    rows = np.arange(len(codes))
    for _ in range(DEPTH):
        right = codes[rows, features[node]] > thresholds[node]
        node = 2 * node + 1 + right
    return node - len(features)


def permute_and_flip(
    counts: NDArray[np.float64], epsilon: float, rng: np.random.Generator
) -> Codes:
    """A label per leaf: the maximum with exponential noise of scale 1/ε, which has its law."""
    return (counts + rng.exponential(1 / epsilon, counts.shape)).argmax(axis=1)
