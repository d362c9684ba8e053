"""The widest change at each distance, against a plain loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.kernels.context_widths import widest
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.entropy_table import entropy_sums


def by_all_pairs(
    pairs: RarestPairs, sums: Integers, distance: int, rows: int, replace: bool
) -> int:
    widths = [0]
    for m, beta in zip(pairs.others.tolist(), pairs.rarest.tolist(), strict=True):
        taken = min(distance, beta)
        end = min(m + (distance if replace else distance - taken) + beta - taken, rows - 1)
        start = beta - taken
        widths.append(int(sums[end + 1] - sums[end] - (sums[start + 1] - sums[start])))
    return max(widths)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("bits", [2, 20])
def test_pairs_that_are_left_out_never_decide(replace: bool, bits: int) -> None:
    rng = np.random.default_rng(bits)
    most = 0
    for classes, largest in ((2, 9), (2, 60), (3, 30), (5, 3)):
        for _ in range(10):
            table = rng.integers(0, largest, (int(rng.integers(1, 12)), classes))
            rows = int(table.sum()) + 3
            pairs, sums = RarestPairs.of([table]).merged(), entropy_sums(rows, bits)
            distances = rng.permutation(rows)
            expected = [by_all_pairs(pairs, sums, t, rows, replace) for t in distances.tolist()]
            assert widest(*pairs[1:], sums, distances, rows, replace).tolist() == expected
            most = max(most, len(pairs.others))
    assert most > 3
