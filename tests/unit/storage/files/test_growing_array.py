"""Arrays on the disk: what is put in is there, and nothing has a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from storage.files.growing_array import GrowingArray, sorted_copy


def test_what_is_appended_is_seen(tmp_path: Path) -> None:
    array = GrowingArray(tmp_path, np.int32)
    assert array.array().tolist() == []
    array.append(np.arange(5)[::2])
    assert array.array().tolist() == [0, 2, 4]
    array.append(np.array([7], np.int64))
    seen = array.extend(2)
    assert (seen.tolist(), seen.dtype) == ([0, 2, 4, 7, 0, 0], np.dtype(np.int32))
    seen[4] = 9
    assert array.array()[4] == 9
    assert list(tmp_path.iterdir()) == []
    del array
    assert seen[3] == 7


def test_a_sorted_copy_leaves_the_values_alone(tmp_path: Path) -> None:
    values = np.random.default_rng(3).random(3000)
    before = values.copy()
    assert sorted_copy(values, tmp_path).tolist() == sorted(before)
    assert values.tolist() == before.tolist()
    assert sorted_copy(values[:0], tmp_path).tolist() == []
