"""The race: brackets contain the exact value, and only the random bits decide the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.executor import Inline
from mechanisms.noise import race as race_module
from mechanisms.noise.addition import PARALLEL_FROM
from mechanisms.noise.race import kth_smallest, race, separated
from mechanisms.noise.rate import Rate
from tests.support.randomness import GivenWords, SeededRandomness
from tests.unit.mechanisms.noise.batches import brackets
from tests.unit.mechanisms.noise.rates import NAMES, RATES
from tests.unit.mechanisms.noise.test_addition import Several

FINE = Rate.of(10**9, 20)
EXTREMES = [2**e + d for e in (12, 13, 32, 53, 62, 63) for d in (-1, 0, 1)] + [
    2**64 - 2**e - d for e in (12, 13, 32, 53, 62) for d in (0, 1, 2)
]


@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_brackets_hold_the_truth_with_room(rate: Rate) -> None:
    """Both ends of u's interval, in 60 digits, use less than half of the bracket."""
    words = np.array(EXTREMES + SeededRandomness(1).stream().words(300).tolist(), dtype=np.uint64)
    gaps = [i * 2**61 // words.size for i in range(words.size)]
    gaps[::3] = [0] * len(gaps[::3])
    scores = np.array([2**61 - gap for gap in gaps])
    low, high = brackets(scores, rate, words)
    with mpmath.workdps(60):
        for word, gap, floor, ceiling in zip(words.tolist(), gaps, low, high, strict=True):
            shift = mpmath.mpf(rate.a) * gap / rate.b
            middle, radius = (mpmath.mpf(floor) + ceiling) / 2, (mpmath.mpf(ceiling) - floor) / 2
            if math.isinf(floor) or math.isinf(ceiling):
                assert min(word, 2**64 - 1 - word) < 4096
                continue
            for numerator in (word, word + 1):
                truth = mpmath.log(-mpmath.log1p(-mpmath.mpf(numerator) / 2**64)) + shift
                assert abs(truth - middle) < radius / 2


@pytest.mark.parametrize("word", [0, 1, 4095, 2**64 - 1, 2**64 - 4096])
def test_brackets_at_the_ends_are_infinite(word: int) -> None:
    low, high = brackets(np.zeros(1, dtype=np.int64), FINE, np.array([word], dtype=np.uint64))
    assert (low[0], high[0]) == (-math.inf, math.inf)


@settings(deadline=None, max_examples=60)
@given(
    scores=st.lists(st.integers(-5, 5), min_size=1, max_size=12),
    bits=st.sampled_from([0, 20]),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
def test_refinement_never_changes_an_answer(
    scores: list[int], bits: int, data: st.DataObject, seed: int
) -> None:
    """Brackets 2⁴⁰ and 2⁶⁰ times as wide: the refined intervals find the order that the narrow
    brackets found, for both are that of the same bits."""
    k = data.draw(st.integers(1, len(scores)))
    array = np.array(scores) << bits
    rate = Rate.of(10**9, bits, k)
    plain, wide, blind = (
        race(array, k, rate, SeededRandomness(seed), Inline(), widen=widen)
        for widen in (1.0, 2.0**40, 2.0**60)
    )
    assert plain.tolist() == wide.tolist() == blind.tolist()
    assert len(set(plain.tolist())) == k


def test_wide_brackets_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets of 2⁴⁰ do overlap, so the test above exercises the refinement."""
    refined: list[int] = []
    true_first = race_module.first_in_order

    def first_in_order(arrivals: list[Any], *rest: Any) -> list[int]:
        refined.append(len(arrivals))
        return true_first(arrivals, *rest)

    monkeypatch.setattr(race_module, "first_in_order", first_in_order)
    scores = np.zeros(200, dtype=np.int64)
    plain = race(scores, 20, FINE, SeededRandomness(3), Inline())
    assert refined == []
    assert race(scores, 20, FINE, SeededRandomness(3), Inline(), widen=2.0**40).tolist() == (
        plain.tolist()
    )
    assert len(refined) == 1
    assert refined[0] >= 20


@pytest.mark.parametrize("same", [0, 5, 2**63, 2**64 - 1])
def test_equal_words_are_told_apart_by_the_bits_that_follow(same: int) -> None:
    """Three candidates own the same 64 bits; the next decide: 7 < 8, then 1 < 2 after two 7s."""
    words = [same] * 3
    scores = np.zeros(3, dtype=np.int64)
    more = [8 << 40, 7 << 40, 7 << 40, 2 << 40, 1 << 40]
    drawn = race(scores, 3, FINE, GivenWords(words + more), Inline())
    assert drawn.tolist() == [2, 1, 0]


def test_long_vectors_are_split_and_the_parts_read_their_own_streams() -> None:
    scores = np.arange(PARALLEL_FROM + 1) << 10
    drawn = race(scores, 3, FINE, SeededRandomness(4), Several())
    randomness = SeededRandomness(4)
    counts = np.diff([scores.size * piece // 3 for piece in range(4)])
    words = np.concatenate([randomness.stream().words(int(count)) for count in counts])
    low, _ = brackets(scores, FINE, words)
    assert drawn.tolist() == np.argsort(low)[:3].tolist()


floats: Iterable[float] | Any = st.floats(allow_nan=False) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf]
)


@settings(deadline=None)
@given(values=st.lists(floats, min_size=1, max_size=30), data=st.data())
def test_the_kth_smallest_float_is_that_of_sorting(
    values: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    assert kth_smallest(np.array(values), k) == sorted(values)[k - 1]


def test_brackets_that_touch_are_not_separated() -> None:
    low, high = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.5, 9.0])
    assert not separated(low, high, 1)
    assert separated(low[1:], high[1:], 1)
    assert separated(low[1:], high[1:], 2)
