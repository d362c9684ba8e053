"""Tables of sets of attributes agree with plain counts, however the sets are covered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels import set_tables as module
from mechanisms.kernels.columns import stacked
from mechanisms.kernels.set_tables import TILE, cells_of, covering, set_tables
from mechanisms.model.executor import Inline


class Three(Inline):
    """Cuts the sets into three parts."""

    workers = 3


@settings(deadline=None, max_examples=30)
@given(
    rows=st.sampled_from([0, 1, 3, 50, TILE + 5]),
    levels=st.lists(st.sampled_from([1, 2, 3, 7, 300]), min_size=3, max_size=5),
    size=st.integers(1, 3),
    cells=st.sampled_from([1, 30, 1 << 13]),
)
def test_tables_are_those_of_numpy(rows: int, levels: list[int], size: int, cells: int) -> None:
    random = np.random.default_rng(rows)
    columns = [(random.integers(0, n, rows).astype(np.uint16), n) for n in levels]
    sets = list(combinations(range(len(levels)), size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "COVER_CELLS", cells)
        for executor in (Inline(), Three()):
            tables = set_tables(stacked(columns), levels, sets, executor, rows)
            assert tables.keys() == set(sets)
            for one, table in tables.items():
                expected = np.zeros([levels[x] for x in one], np.int64)
                np.add.at(expected, tuple(columns[x][0] for x in one), 1)
                assert (table == expected).all()


def test_every_set_is_covered_once_by_few_larger_ones() -> None:
    levels = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 4, 5, 3, 7, 16]
    sets = list(combinations(range(15), 3))
    covers = covering(levels, sets)
    assert sorted(one for covered in covers.values() for one in covered) == sets
    assert all(set(one) <= set(cover) for cover, covered in covers.items() for one in covered)
    assert len(covers) < len(sets) / 5
    assert all(cells_of(levels, [cover]) <= module.COVER_CELLS for cover in covers)
    assert len(covering([2] * 15, sets)) <= 5


def test_many_sets_and_large_domains_are_counted_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sets = list(combinations(range(4), 2))
    assert [*covering([300] * 4, sets)] == sets
    monkeypatch.setattr(module, "MOST_COVERED", 2)
    assert [*covering([2] * 4, sets)] == sets
