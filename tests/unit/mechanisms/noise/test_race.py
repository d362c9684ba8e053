"""The race: brackets contain the exact value, and only the random bits decide the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.executor import Inline
from mechanisms.model.randomness import WordSource
from mechanisms.noise import race as race_module
from mechanisms.noise import refinement
from mechanisms.noise.addition import PARALLEL_FROM
from mechanisms.noise.noisy_max import noisy_max, noisy_max_of_rows
from mechanisms.noise.race import first_to_arrive, kth_smallest, race, race_of_rows, separated
from mechanisms.noise.rate import Rate
from mechanisms.noise.refinement import Arrival
from tests.support.randomness import GivenWords, SeededRandomness
from tests.unit.mechanisms.noise.batches import brackets
from tests.unit.mechanisms.noise.rates import NAMES, RATES
from tests.unit.mechanisms.noise.test_addition import Several

FINE = Rate.of(10**9, 20)
EXTREMES = [2**e + d for e in (12, 13, 32, 53, 62, 63) for d in (-1, 0, 1)] + [
    2**64 - 2**e - d for e in (12, 13, 32, 53, 62) for d in (0, 1, 2)
]


both_laws = pytest.mark.parametrize("gumbel", [False, True], ids=["noisy max", "race"])


def truth_of(u: mpmath.mpf, gap: int, rate: Rate, gumbel: bool) -> mpmath.mpf:
    noise = mpmath.log(-mpmath.log(u)) if gumbel else mpmath.log(u)
    return noise + mpmath.mpf(rate.a) * gap / rate.b


@both_laws
@pytest.mark.parametrize("rate", RATES, ids=NAMES)
def test_brackets_hold_the_truth_and_little_more(rate: Rate, gumbel: bool) -> None:
    """Errors use less than half of what is granted, in 60 digits; the bits of u use the rest."""
    words = np.array(EXTREMES + SeededRandomness(1).stream().words(300).tolist(), dtype=np.uint64)
    gaps = [i * 2**61 // words.size for i in range(words.size)]
    gaps[::3] = [0] * len(gaps[::3])
    scores = np.array([2**61 - gap for gap in gaps])
    low, high = brackets(scores, rate, words, gumbel=gumbel)
    with mpmath.workdps(60):
        for word, gap, floor, ceiling in zip(words.tolist(), gaps, low, high, strict=True):
            cell = word >> 12
            shift = mpmath.mpf(rate.a) * gap / rate.b
            for side, bound in ((-1, floor), (1, ceiling)):
                # A candidate's arrival time in the race falls with its uniform number u for Gumbel
                # noise, and rises with it otherwise.
                numerator = cell + (side == (-1 if gumbel else 1))
                if math.isinf(bound):
                    assert numerator == 0 or (gumbel and numerator == 2**52)
                    continue
                truth = truth_of(mpmath.mpf(numerator) / 2**52, gap, rate, gumbel)
                granted = mpmath.mpf(2) ** -43 * (1 + abs(truth - shift)) + shift / 2**50
                assert granted / 2 < side * (bound - truth) < granted * 3 / 2


@pytest.mark.parametrize("word", [0, 1, 4095])
def test_a_bracket_at_the_ends_is_infinite(word: int) -> None:
    """u may be anything up to the end, so noise has no bound there."""
    scores = np.zeros(1, dtype=np.int64)
    for leading, gumbel, expected in (
        (word, False, (True, False)),
        (word, True, (False, True)),
        (2**64 - 1 - word, True, (True, False)),
        (2**64 - 1 - word, False, (False, False)),
    ):
        bounds = brackets(scores, FINE, np.array([leading], dtype=np.uint64), gumbel=gumbel)
        assert tuple(math.isinf(bound[0]) for bound in bounds) == expected


@both_laws
@settings(deadline=None, max_examples=30)
@given(
    scores=st.lists(st.integers(-5, 5), min_size=1, max_size=12),
    bits=st.sampled_from([0, 20]),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
def test_refinement_never_changes_an_answer(
    gumbel: bool, scores: list[int], bits: int, data: st.DataObject, seed: int
) -> None:
    """Brackets 2⁴⁰ and 2⁶⁰ times as wide: the refined intervals find the order that the narrow
    brackets found, for both are that of the same bits."""
    k = data.draw(st.integers(1, len(scores)))
    array, draw = np.array(scores) << bits, race if gumbel else noisy_max
    rate = Rate.of(10**9, bits, k)
    plain, wide, blind = (
        draw(array, k, rate, SeededRandomness(seed), Inline(), widen=widen)
        for widen in (1.0, 2.0**40, 2.0**60)
    )
    assert plain.tolist() == wide.tolist() == blind.tolist()
    assert len(set(plain.tolist())) == k


@both_laws
@settings(deadline=None, max_examples=30)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 7)),
    widen=st.sampled_from([1.0, 2.0**40, 2.0**60]),
    seed=st.integers(0, 2**32),
)
def test_each_row_is_drawn_as_by_itself(
    gumbel: bool, shape: tuple[int, int], widen: float, seed: int
) -> None:
    """The words of a row are its own. Bits that a refinement appends come after all of them."""
    scores = np.random.default_rng(seed).integers(-5, 5, shape) << 18
    words = SeededRandomness(seed).stream().words(scores.size)
    together, alone = (race_of_rows, race) if gumbel else (noisy_max_of_rows, noisy_max)
    drawn = together(scores, FINE, GivenWords(words.tolist()), widen=widen)
    assert drawn.tolist() == [
        alone(row, 1, FINE, GivenWords(own.tolist()), Inline())[0]
        for row, own in zip(scores, words.reshape(shape), strict=True)
    ]


@both_laws
def test_equal_words_of_a_row_are_told_apart_by_the_bits_that_follow(gumbel: bool) -> None:
    scores, more = np.zeros((2, 2), dtype=np.int64), [8 << 40, 7 << 40, 2 << 40, 3 << 40]
    draw = race_of_rows if gumbel else noisy_max_of_rows
    drawn = draw(scores, FINE, GivenWords([1 << 63] * 4 + more))
    assert drawn.tolist() == ([0, 1] if gumbel else [1, 0])


def close_calls(gumbel: bool, widen: float) -> tuple[int, int]:
    """Wrong orders of two, and refined ones, over all u of four bits and few that follow.

    e^λ = 3/2 up to 2⁻⁵², so without ``gumbel`` u = 3j/16 at the best score and 2j/16 one below
    arrive together, but for the bits that follow.
    """
    rate, scores = Rate(round(math.log(1.5) * 2**52), 1 << 52), np.array([1, 0])
    wrong = again = 0
    finish = SeededRandomness(1).stream().words(2).tolist()
    pairs = [(one << 60, other << 60) for one, other in product(range(1, 16), repeat=2)]
    nudges = [sign << shift for shift in (9, 13, 17, 21) for sign in (1, -1)]
    close = [((3 * j) << 60, ((2 * j) << 60) + by) for j, by in product(range(1, 6), nudges)]
    for words in pairs + close:
        source = GivenWords([*words, *finish])
        drawn = first_to_arrive(
            scores, 2, rate, source, Inline(), gumbel=gumbel, widen=widen
        ).tolist()
        again += source.read > 2
        with mpmath.workdps(60):
            ends = [
                truth_of((word + mpmath.mpf(more) / 2**64) / 2**64, gap, rate, gumbel)
                for gap, (word, more) in enumerate(zip(words, finish, strict=True))
            ]
        wrong += drawn != [int(ends[1] < ends[0]), int(ends[0] <= ends[1])]
    return wrong, again


@both_laws
def test_every_close_call_of_a_small_universe_is_decided_by_the_bits(gumbel: bool) -> None:
    wrong, again = close_calls(gumbel, 1.0)
    assert wrong == 0
    assert again >= (1 if gumbel else 5)


def test_brackets_that_grant_no_error_are_caught() -> None:
    assert close_calls(False, 0.0)[0] > 0


def test_bits_that_are_drawn_anew_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refinement must append to the bits by which it chose the candidates: else another wins."""
    scores = np.array([1, 0])

    def drawn(widen: float) -> list[int]:
        return [
            int(noisy_max(scores, 1, Rate(1, 1), SeededRandomness(seed), Inline(), widen=widen)[0])
            for seed in range(12)
        ]

    assert drawn(2.0**44) == drawn(1.0)
    true_refined = refinement.refined

    def redrawn(arrival: Arrival, rate: Rate, source: WordSource) -> Arrival:
        return true_refined(replace(arrival, bits=0, length=0), rate, source)

    monkeypatch.setattr(refinement, "refined", redrawn)
    assert drawn(2.0**44) != drawn(1.0)


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
    """Three candidates own the same 64 bits; the next decide: 7 < 8, then 1 < 2 after two 7s.

    With exponential noise the smallest u comes first, and in a race the largest.
    """
    words = [same] * 3
    scores = np.zeros(3, dtype=np.int64)
    more = [8 << 40, 7 << 40, 7 << 40, 2 << 40, 1 << 40]
    drawn = noisy_max(scores, 3, FINE, GivenWords(words + more), Inline())
    assert drawn.tolist() == [2, 1, 0]
    drawn = race(scores, 3, FINE, GivenWords(words + more), Inline())
    assert drawn.tolist() == [0, 1, 2]


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
