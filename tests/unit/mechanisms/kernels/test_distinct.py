"""Distinct persons per cell agree with sets of persons, also in margins and across tiles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mechanisms.kernels import distinct
from mechanisms.kernels.cells import Axis, Cells
from mechanisms.kernels.distinct import distinct_persons

SIZES = (3, 2, 4)


@pytest.mark.parametrize("tile", [1, 7, 1 << 16])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_they_are_those_of_sets(rows: int, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "TILE", tile)
    random = np.random.default_rng(rows)
    persons = np.sort(random.integers(0, 40, rows)).astype(np.int32)
    # The last code of each attribute belongs to no group, and about 30 % of the rows do not meet
    # the condition.
    codes = [random.integers(0, size + 1, rows).astype(np.uint8) for size in SIZES]
    meets = random.random(rows) < 0.7
    axes = tuple(
        Axis(column.__getitem__, np.append(np.arange(size), -1), size)
        for column, size in zip(codes, SIZES, strict=True)
    )
    cells = Cells(axes, rows, meets.__getitem__)
    margins = [axes for size in range(4) for axes in combinations(range(3), size)]
    inside = meets & np.all([c < size for c, size in zip(codes, SIZES, strict=True)], axis=0)
    for axes_of, counts in zip(margins, distinct_persons(cells, persons, margins), strict=True):
        assert counts.shape == tuple(SIZES[axis] for axis in axes_of)
        assert counts.dtype == np.int64
        for cell in np.ndindex(*counts.shape):
            there = inside.copy()
            for axis, code in zip(axes_of, cell, strict=True):
                there &= codes[axis] == code
            assert counts[cell] == len(set(persons[there].tolist()))
