"""Long division against Python's unbounded integers, up to the edge of 64 bits."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.kernels.long_division import LIMIT, scaled_floor

numerators = st.integers(-(2**63) + 1, 2**63 - 1)
denominators = st.integers(1, LIMIT - 1)


@settings(deadline=None)
@given(a=numerators, b=denominators, bits=st.integers(0, 40))
@example(a=2**63 - 1, b=LIMIT - 1, bits=40)
@example(a=-(2**63) + 1, b=LIMIT - 1, bits=40)
@example(a=LIMIT - 2, b=LIMIT - 1, bits=61)
@example(a=-1, b=LIMIT - 1, bits=20)
@example(a=0, b=1, bits=0)
def test_it_is_the_floor_of_the_scaled_quotient(a: int, b: int, bits: int) -> None:
    quotient = (a << bits) // b
    if abs(quotient) < 2**63:
        assert scaled_floor(np.array([a]), np.array([b]), bits).tolist() == [quotient]
        assert scaled_floor(np.array([a]), b, bits).tolist() == [quotient]


def test_shapes_are_kept_and_views_are_read_as_they_stand() -> None:
    values = np.arange(-12, 12, dtype=np.int64)[::2]
    quotients = scaled_floor(values, 5, 3)
    assert quotients.tolist() == [8 * int(a) // 5 for a in values]
    assert scaled_floor(np.zeros(0, dtype=np.int64), 5, 3).shape == (0,)


def test_inputs_are_not_changed() -> None:
    a, b = np.array([7, -7]), np.array([2, 3])
    scaled_floor(a, b, 4)
    assert (a.tolist(), b.tolist()) == ([7, -7], [2, 3])
