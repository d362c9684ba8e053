"""What δ of information gain and of Gini depends on: for every level its rarest class.

Of level j with τ records, b of them of the rarest class (classes without a record count):
    m = τ − b,   β = max(b, 1) − 1.
One record moves m or β by one; a replacement moves both by one at most. δ is the largest value
over the levels of a function that grows with m and falls with β, so levels that another one
surpasses in both never decide and are dropped.

With ``t`` changes to come the worst case is M(t), Q(t): under add/remove the first min(t, β) take
records of the rarest class away and the others add to the rest; a replacement does both at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

#: The letters of δ in the catalogue: b there is β here.
LEVEL_TERMS = (
    "b: one less than the records of a level's rarest class, at least 0; m: the level's records "
    "of all other classes"
)


@dataclass(frozen=True)
class RarestPairs:
    """Pairs (m, β) of all candidates in one list; those of candidate r are numbers
    ``offsets[r]`` … ``offsets[r + 1] − 1``, by falling m. All int64."""

    offsets: Integers
    others: Integers
    rarest: Integers

    @classmethod
    def of(cls, tables: Sequence[Integers]) -> RarestPairs:
        """From level × class counts of each candidate, at least two classes."""
        which = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        if len({table.shape[1] for table in tables}) == 1:
            return cls._undominated(len(tables), which, *_pairs(np.concatenate(tables)))
        pairs = [_pairs(table) for table in tables]
        others = np.concatenate([one for one, _ in pairs])
        return cls._undominated(len(tables), which, others, np.concatenate([b for _, b in pairs]))

    def merged(self) -> RarestPairs:
        """All candidates as one: what the largest δ of any of them depends on."""
        alone = np.zeros(self.others.size, dtype=np.int64)
        return self._undominated(1, alone, self.others, self.rarest)

    @classmethod
    def _undominated(
        cls, candidates: int, which: Integers, others: Integers, rarest: Integers
    ) -> RarestPairs:
        """The pairs without another of their candidate of larger or equal m and smaller or equal
        β; ``which`` names the candidate of each."""
        order = np.lexsort((rarest, -others, which))
        which, others, rarest = which[order], others[order], rarest[order]
        keep = falling(which, rarest)
        kept = np.bincount(which[keep], minlength=candidates)
        offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return cls(offsets, others[keep], rarest[keep])


def _pairs(table: Integers) -> tuple[Integers, Integers]:
    fewest = table.min(axis=1)
    return table.sum(axis=1) - fewest, np.maximum(fewest, 1) - 1


@compiled
def falling(which: Integers, values: Integers) -> NDArray[np.bool_]:
    """Where a value is below all before it of the same group; groups stand together."""
    found = np.zeros(len(values), np.bool_)
    lowest = 0
    for i in range(len(values)):
        if i == 0 or which[i] != which[i - 1] or values[i] < lowest:
            found[i] = True
            lowest = values[i]
    return found
