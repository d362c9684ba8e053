"""The stored tables of a version follow from its description, within public bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
import pytest

from mechanisms.model import level_tables
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.level_tables import (
    cells_as_rows,
    rows_read,
    split,
    stored_table,
    stored_tables,
)
from mechanisms.model.open_domain import OpenAttribute

SIZES = {"wide": 300, "class": 2, "mid": 30, "small": 3}
DOMAIN = TableDomain(
    (
        *(CategoricalAttribute(n, tuple(map(str, range(size)))) for n, size in SIZES.items()),
        NumericAttribute("number", 0.0, 1.0, (0.0, 0.5, 1.0)),
        OpenAttribute("open"),
    ),
    class_attribute="class",
    max_rows=10,
)
DATASET = Dataset("d", NeighbouringRelation.ADD_REMOVE, DOMAIN)


def test_all_attributes_and_pairs_with_public_levels_are_stored() -> None:
    names = [*SIZES, "number"]
    expected = {(name,) for name in names} | set(combinations(names, 2))
    assert set(stored_tables(DOMAIN)) == expected
    order = list(stored_tables(DOMAIN))
    assert [len(one) for one in order] == [1] * 5 + [2] * 10
    assert ["class" in one for one in order[5:]] == [True] * 4 + [False] * 6


def test_the_bounds_hold_and_change_with_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (1, 10**9):
        assert stored_tables(replace(DOMAIN, max_rows=rows)) == stored_tables(DOMAIN)
    bounded = stored_tables(replace(DOMAIN, level_cells=1000))
    assert 0 < sum(map(prod, bounded.values())) <= 1000
    assert stored_tables(replace(DOMAIN, level_cells=0)) == {}
    monkeypatch.setattr(level_tables, "TABLE_CELLS", 100)
    monkeypatch.setattr(level_tables, "MOST_TABLES", 6)
    few = stored_tables(replace(DOMAIN, level_cells=1 << 21))
    assert len(few) == 6
    assert max(map(prod, few.values())) <= 100


def test_the_smallest_table_with_the_attributes_is_read() -> None:
    assert stored_table(DATASET, {"mid"}) == ("mid",)
    assert stored_table(DATASET, {"small", "wide"}) == ("wide", "small")
    assert stored_table(DATASET, set()) == ("class",)
    assert stored_table(DATASET, {"mid", "small", "class"}) is None
    assert stored_table(DATASET, {"open"}) is None
    assert rows_read(DATASET, {"small", "wide"}, 10**8) == 900
    assert rows_read(DATASET, {"small", "wide", "mid"}, 10**8) == 10**8


def test_an_array_of_another_length_is_refused() -> None:
    size = sum(map(prod, stored_tables(DOMAIN).values()))
    tables = split(np.arange(size), DOMAIN)
    assert {names: table.shape for names, table in tables.items()} == stored_tables(DOMAIN)
    assert np.concatenate([one.ravel() for one in tables.values()]).tolist() == list(range(size))
    for wrong in (size - 1, size + 1):
        with pytest.raises(ValueError, match=r"fit|reshape"):
            split(np.arange(wrong), DOMAIN)


def test_cells_are_rows_in_row_major_order() -> None:
    rows = cells_as_rows(DATASET, ("wide", "class"))
    assert (rows.codes["wide"].dtype, rows.codes["class"].dtype) == (np.uint16, np.uint8)
    pairs = zip(rows.codes["wide"].tolist(), rows.codes["class"].tolist(), strict=True)
    assert list(pairs) == [(i, j) for i in range(300) for j in range(2)]
