"""The rarest class of every level, on which δ of information gain and of Gini depends.

For level j with τ records, b of them in the rarest class (classes without a record count):
    m = τ − b,   β = max(b, 1) − 1.
One record moves m or β by one; a replacement moves both by at most one. δ is the largest value over
the levels of a function that grows with m and falls with β. So levels that another one exceeds in
both never decide and are dropped.

M(t) and Q(t) are m and β after ``t`` changes in the worst case for δ. Under add/remove the first
min(t, β) changes remove records of the rarest class and the others add to the rest. Under replace
each change does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.radix import lexicographic
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers


class RarestPairs(NamedTuple):
    """Pairs (m, β) of all candidates in one list: ``others`` is m, ``rarest`` is β; all int64.

    The pairs of candidate r have the numbers ``offsets[r]`` … ``offsets[r + 1] − 1``, by falling m.
    """

    offsets: Integers
    others: Integers
    rarest: Integers

    @classmethod
    @follows_records(
        "levels that never decide are dropped",
        lambda tables: 64 * (sum(map(len, tables)) + 20),
    )
    def of(cls, tables: Sequence[Integers]) -> RarestPairs:
        """The pairs of each candidate from its level × class counts, with at least two classes."""
        which = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        if len({table.shape[1] for table in tables}) == 1:
            return cls._undominated(len(tables), which, *_pairs(np.concatenate(tables)))
        pairs = [_pairs(table) for table in tables]
        others = np.concatenate([one for one, _ in pairs])
        return cls._undominated(len(tables), which, others, np.concatenate([b for _, b in pairs]))

    @follows_records(
        "levels that never decide are dropped",
        lambda self: 64 * (self.others.size + 20),
    )
    def merged(self) -> RarestPairs:
        """The pairs of all candidates as those of one candidate, whose δ is the largest of all."""
        alone = np.zeros(self.others.size, dtype=np.int64)
        return self._undominated(1, alone, self.others, self.rarest)

    @classmethod
    def _undominated(
        cls, candidates: int, which: Integers, others: Integers, rarest: Integers
    ) -> RarestPairs:
        """The pairs without those that another pair of the same candidate makes superfluous.

        ``which`` is the candidate of each pair. Another pair suffices if its m is at least as large
        and its β at most as large.
        """
        order = lexicographic(rarest, -others, which)
        which, others, rarest = which[order], others[order], rarest[order]
        keep = new_minima(which, rarest)
        counts = np.bincount(which[keep], minlength=candidates)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(offsets, others[keep], rarest[keep])


def _pairs(table: Integers) -> tuple[Integers, Integers]:
    fewest = table.min(axis=1)
    return table.sum(axis=1) - fewest, np.maximum(fewest, 1) - 1


@compiled
def new_minima(which: Integers, values: Integers) -> NDArray[np.bool_]:
    """True where a value is below all earlier values of its group; groups are contiguous."""
    is_minimum = np.zeros(len(values), np.bool_)
    lowest = 0
    for i in range(len(values)):
        if i == 0 or which[i] != which[i - 1] or values[i] < lowest:
            is_minimum[i] = True
            lowest = values[i]
    return is_minimum
