"""How far one record moves the entropy of a target given a context, at every distance."""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

#: Stands for the largest m − β of an empty list of pairs (m, β). A pair describes a combination of
#: values of the context: m counts its records outside of its rarest class, and β is one less than
#: those of that class, at least 0. The number is far below every real m − β, so an empty list never
#: determines the maximum.
_NONE = -(1 << 60)


def widest(
    others: Integers,
    rarest: Integers,
    sums: Integers,
    distances: Integers,
    rows: int,
    replace: bool,
) -> Integers:
    """max over the pairs of Ψ[M(t) + Q(t)] − Ψ[Q(t)] at each distance t, int64 (distances,).

    Where t reaches the β of a pair, Q(t) is 0 and M(t) is t more than m − β, or than m under
    ``replace``. Ψ never falls, as ψ rises and Ψ[x] is the integer nearest to it. So of all these
    pairs the one with the largest such number is as wide as any, and the others are not visited.

    Args:
        others, rarest: the pairs (m, β) of ``rarest_class``, which also defines M(t) and Q(t), as
            ``RarestPairs.merged`` orders them: both fall.
        sums: Φ[0 … rows] of ``entropy_table``; Ψ are its increments.
        rows: the public bound on records.
    """
    reached = others if replace else others - rarest
    farthest = np.append(np.maximum.accumulate(reached[::-1])[::-1], _NONE)
    # Each combination of values has a pair (m, β): m counts its records outside of its rarest
    # class, and β is one less than those of that class, at least 0. The pairs are sorted by falling
    # β. For each distance t, ``pairs`` is the number of pairs with β above t, which the kernel
    # visits one by one. Of all others only the largest m − β (or m under ``replace``) matters, and
    # ``farthest`` holds it.
    pairs = np.searchsorted(-rarest, -distances)
    return _widest(others, rarest, sums, distances, farthest, pairs, rows, replace)


@compiled
def _widest(
    others: Integers,
    rarest: Integers,
    sums: Integers,
    distances: Integers,
    farthest: Integers,
    pairs: Integers,
    rows: int,
    replace: bool,
) -> Integers:
    largest = np.zeros(len(distances), np.int64)
    for i in range(len(distances)):
        t = distances[i]
        end = min(max(farthest[pairs[i]] + t, 0), rows - 1)
        largest[i] = max(sums[end + 1] - sums[end] - (sums[1] - sums[0]), 0)
        for pair in range(pairs[i]):
            rest = rarest[pair] - t
            further = t if replace else 0
            end = min(others[pair] + further + rest, rows - 1)
            width = sums[end + 1] - sums[end] - (sums[rest + 1] - sums[rest])
            largest[i] = max(largest[i], width)
    return largest
