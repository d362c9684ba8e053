"""Set bits of a word, against Python's own count."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from mechanisms.kernels.bits import set_bits
from mechanisms.kernels.compiled import compiled


@compiled
def count(word: np.uint64) -> int:
    return set_bits(word)  # type: ignore[no-any-return]


@given(st.integers(0, 2**64 - 1))
@example(2**64 - 1)
@example(0x8000_0000_0000_0001)
def test_set_bits_are_counted(word: int) -> None:
    assert count(np.uint64(word)) == word.bit_count()
