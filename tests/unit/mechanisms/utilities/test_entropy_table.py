"""Ψ and Φ are the nearest integers, even where doubles round wrongly, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.model.errors import UnsupportedQuery
from mechanisms.utilities import entropy_table
from mechanisms.utilities.entropy_table import MAX_ROWS, check_rows, entropy_sums, increments
from tests.evidence.certification.tables import nearest_increment, nearest_sum


@settings(deadline=None, max_examples=60)
@given(start=st.integers(0, MAX_ROWS - 5), bits=st.sampled_from([0, 1, 12, 31, 32]))
@example(start=0, bits=32)
@example(start=0, bits=0)
@example(start=MAX_ROWS - 5, bits=32)
def test_increments_are_the_nearest_integers(start: int, bits: int) -> None:
    values = increments(start, start + 5, bits)
    assert values.tolist() == [nearest_increment(x, bits) for x in range(start, start + 5)]


def test_near_halves_are_decided_by_more_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among a million values on the finest grid some lie within 2⁻¹³ of a half."""
    halves: list[int] = []
    decide = entropy_table._in_many_digits

    def counted(x: int, bits: int) -> int:
        halves.append(x)
        return decide(x, bits)

    monkeypatch.setattr(entropy_table, "_in_many_digits", counted)
    values = increments(10**6, 10**6 + 200_000, 32)
    assert 10 < len(halves) < 500
    assert [values[x - 10**6] for x in halves] == [nearest_increment(x, 32) for x in halves]
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("bits", [0, 3, 32])
def test_sums_go_on_over_chunks(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_table, "CHUNK", 7)
    for rows in (1, 6, 7, 8, 50):
        sums = entropy_table._sums(rows, bits)
        assert sums.tolist() == [nearest_sum(n, bits) for n in range(rows + 1)]
        assert not sums.flags.writeable


def test_tables_are_kept_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_table, "CACHE_ENTRIES", 100)
    monkeypatch.setattr(entropy_table, "_cache", type(entropy_table._cache)())
    first = entropy_sums(39, 4)
    assert entropy_sums(39, 4) is first
    assert entropy_sums(39, 5) is not first
    assert entropy_sums(39, 4) is first  # This table is now the most recently used one.
    entropy_sums(39, 6)
    assert set(entropy_table._cache) == {(39, 4), (39, 6)}
    entropy_sums(200, 4)
    assert (200, 4) not in entropy_table._in_use  # no caller holds the large table
    assert set(entropy_table._cache) == {(39, 4), (39, 6)}


def test_the_bound_on_rows_is_public() -> None:
    check_rows(MAX_ROWS)
    with pytest.raises(UnsupportedQuery, match="rows") as refusal:
        entropy_sums(MAX_ROWS + 1, 32)
    assert refusal.value.supported == {"rows": MAX_ROWS}
    # Even at the largest number of rows N, the bound N·ψ(N − 1)·2³² on sums of the finest grid is
    # below 2⁶². Here ψ is the largest increment. So all sums fit 64 bits.
    assert MAX_ROWS * nearest_increment(MAX_ROWS - 1, 32) < 2**62


def test_a_large_table_is_made_once_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_table, "CACHE_ENTRIES", 100)
    calls: list[tuple[int, int]] = []
    make = entropy_table._sums

    def counted(rows: int, bits: int) -> Any:
        calls.append((rows, bits))
        return make(rows, bits)

    monkeypatch.setattr(entropy_table, "_sums", counted)
    table = entropy_table.entropy_sums(5003, 3)
    assert entropy_table.entropy_sums(5003, 3) is table
    assert calls == [(5003, 3)]
    del table
    entropy_table.entropy_sums(5003, 3)
    assert len(calls) == 2
