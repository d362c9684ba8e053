"""How far one record moves the entropy of a target given a context, at every distance."""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers


@compiled
def widest(
    others: Integers,
    rarest: Integers,
    sums: Integers,
    distances: Integers,
    rows: int,
    replace: bool,
) -> Integers:
    """max over the pairs of Ψ[M(t) + Q(t)] − Ψ[Q(t)] at each distance t, int64 (distances,).

    Args:
        others, rarest: the pairs (m, β) of ``rarest_class``, which also defines M(t) and Q(t).
        sums: Φ[0 … rows] of ``entropy_table``; Ψ are its increments.
        rows: the public bound on records.
    """
    largest = np.zeros(len(distances), np.int64)
    for i in range(len(distances)):
        t = distances[i]
        for pair in range(len(others)):
            taken = min(t, rarest[pair])
            rest = rarest[pair] - taken
            further = t if replace else t - taken
            end = min(others[pair] + further + rest, rows - 1)
            width = sums[end + 1] - sums[end] - (sums[rest + 1] - sums[rest])
            largest[i] = max(largest[i], width)
    return largest
