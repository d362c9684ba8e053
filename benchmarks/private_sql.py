"""Top k by egocentric betweenness in the manner of PrivateSQL: noisy views, then plain queries.

One view a node v: of every pair of other nodes, the number of shortest paths between them in the
neighbourhood of v, 0 unless both are neighbours of v that are not adjacent. Each view gets ε/n and
Laplace noise of the most that one edge moves it; betweenness is read off the noisy counts. For
comparison alone: with all n views sharing ε there is far more noise than paths, so it is meant for
small samples (here breadth-first ones of 50 nodes).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Adjacency = NDArray[np.int64]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def path_counts(adjacency: Adjacency) -> Counts:
    """(n, pairs): of every view, the paths of length two between each pair a < b."""
    n = len(adjacency)
    pairs = np.triu_indices(n, 1)
    views = np.zeros((n, len(pairs[0])), np.int64)
    for v in range(n):
        inside = adjacency[v] > 0
        ego = adjacency * np.outer(inside, inside)
        apart = np.outer(inside, inside) & (adjacency == 0)
        views[v] = np.where(apart, 1 + ego @ ego, 0)[pairs]
    return views


def betweenness(views: Counts | Floats) -> Floats:
    """Σ of 1 over the number of paths, of counts that round to one at least."""
    whole = np.rint(views)
    found: Floats = np.where(whole >= 1, 1 / np.maximum(whole, 1), 0.0).sum(axis=-1)
    return found


def view_sensitivity(nodes: int) -> int:
    """The most that one edge of a graph of that many nodes moves one view, in L1.

    An edge {v, w} where v has d further neighbours, c of them shared with w: the d − c pairs of w
    with the others gain up to 1 + c paths each, and c(c − 1)/2 pairs at most lose or gain one. An
    edge between two neighbours of v moves its own pair by up to d + 1, and 2d pairs by one.
    """
    d = max(nodes - 2, 0)
    own = max((d - c) * (1 + c) + c * (c - 1) // 2 for c in range(d + 1))
    return max(own, 3 * d + 1)


def top(views: Counts, k: int, epsilon: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The k nodes of most noisy betweenness, in order."""
    n = len(views)
    scale = n * view_sensitivity(n) / epsilon
    noisy = betweenness(views + rng.laplace(scale=scale, size=views.shape))
    return np.argsort(-noisy, kind="stable")[:k]


def breadth_first(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], root: int, size: int
) -> NDArray[np.int64]:
    """The first ``size`` nodes that a breadth-first walk from ``root`` meets; fewer where its
    component ends."""
    seen, order = {root}, [root]
    for node in order:
        for other in indices[indptr[node] : indptr[node + 1]].tolist():
            if other not in seen:
                seen.add(other)
                order.append(other)
                if len(order) == size:
                    return np.array(order)
    return np.array(order)
