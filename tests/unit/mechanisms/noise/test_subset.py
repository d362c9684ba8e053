"""The sampler of sets: its law for any threshold, with refinement, and its public rounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import prod

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate
from mechanisms.noise.shells import DEEPEST, Groups, survivors
from mechanisms.noise.subset import (
    _Coins,
    balanced,
    bracket,
    least_acceptance,
    most_rounds,
    subset,
)
from mechanisms.selection.laws import subset_probabilities
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, base, p_value

Law = dict[tuple[int, ...], Fraction]
Array = NDArray[np.int64]
P = Fraction(1, 2)
VECTORS: list[tuple[tuple[int, ...], int, Law]] = [
    (
        (2, 1, 0),
        2,
        {(0, 1): Fraction(4, 7), (0, 2): Fraction(2, 7), (1, 2): Fraction(1, 7)},
    ),
    (
        (1, 1, 0, 0),
        2,
        {
            (0, 1): Fraction(4, 13),
            **dict.fromkeys([(0, 2), (0, 3), (1, 2), (1, 3)], Fraction(2, 13)),
            (2, 3): Fraction(1, 13),
        },
    ),
]


@pytest.mark.parametrize(("scores", "k", "law"), VECTORS)
def test_the_law_of_the_vectors(scores: tuple[int, ...], k: int, law: Law) -> None:
    assert subset_probabilities(scores, P, k) == law


def coins(scores: Sequence[int], k: int, threshold: Fraction, accepted: bool = True) -> Law:
    """The law of coins with odds p^(−score)/θ: of those tosses with exactly k heads.

    Without ``accepted``, every toss of k heads or more answers with the k best of them.
    """
    heads = [1 / (1 + threshold * P**score) for score in scores]
    law: Law = dict.fromkeys(combinations(range(len(scores)), k), Fraction(0))
    for toss in product((False, True), repeat=len(scores)):
        chance = prod(
            (h if up else 1 - h for h, up in zip(heads, toss, strict=True)), start=Fraction(1)
        )
        up = [i for i, heads_up in enumerate(toss) if heads_up]
        if len(up) == k or (len(up) > k and not accepted):
            best = sorted(up, key=lambda i: -scores[i])[:k]
            law[tuple(sorted(best))] += chance
    whole = sum(law.values())
    return {chosen: chance / whole for chosen, chance in law.items()}


@pytest.mark.parametrize("threshold", [Fraction(1, 9), Fraction(1), Fraction(7, 2), Fraction(40)])
@pytest.mark.parametrize("scores", [(2, 1, 0), (1, 1, 0, 0), (0, 3, 3, 5, 1)])
def test_coins_have_the_law_for_every_threshold(
    scores: tuple[int, ...], threshold: Fraction
) -> None:
    for k in range(1, len(scores)):
        law = subset_probabilities(scores, P, k)
        assert coins(scores, k, threshold) == law
        # Danger: without the exact acceptance step the law depends on the threshold, and the
        # threshold depends on the records.
        assert coins(scores, k, threshold, accepted=False) != law


@pytest.mark.parametrize(
    ("scores", "k"), [((2, 1, 0), 1), ((2, 1, 0), 2), ((1, 1, 0, 0), 2), ((0, 4, 1, 2, 2), 3)]
)
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_draws_have_the_law(scores: tuple[int, ...], k: int, shift: float) -> None:
    """2,000 draws, also with a θ that is wrong by a factor of 4.5; false alarm 10⁻⁶ each."""
    rate, randomness = Rate(1, 2), SeededRandomness(17)
    law = subset_probabilities(scores, base(rate), k)
    array = np.array(scores)
    seen = Counter(
        tuple(subset(array, k, rate, randomness, shift=shift).tolist()) for _ in range(2000)
    )
    observed = np.array([seen[chosen] for chosen in law])
    assert observed.sum() == 2000
    assert p_value(observed, list(law.values())) > FALSE_ALARM


def test_forced_refinement_keeps_the_answer() -> None:
    """Brackets as wide as everything: each coin is decided by interval arithmetic alone."""
    scores, rate = np.array([2, 0, 1]), Rate(1, 2)
    law = subset_probabilities(scores.tolist(), base(rate), 1)
    randomness = SeededRandomness(3)
    seen = Counter(
        tuple(subset(scores, 1, rate, randomness, widen=2.0**41).tolist()) for _ in range(60)
    )
    observed = np.array([seen[chosen] for chosen in law])
    assert p_value(observed, list(law.values())) > FALSE_ALARM


@pytest.mark.parametrize("ahead", [0, 37_000, 10**9, 1 << 60])
def test_the_brackets_hold_the_exact_probabilities(ahead: int) -> None:
    """Where one score is far ahead, y is a small difference of large numbers."""
    scores = np.arange(200) * 2
    scores[7] += ahead
    rate = Rate.of(10 * 10**9, 0, draws=3)
    coins = _Coins.of(scores, 5, rate, 0.0, 1.0)
    coin_brackets = map(bracket, coins.against, coins.errors, coins.shells)
    low, high = np.array(list(coin_brackets)).T
    with mpmath.workprec(300):
        for gap, shell, least, most in zip(coins.gaps, coins.shells, low, high, strict=True):
            y = mpmath.mpf(rate.a * int(gap)) / rate.b + mpmath.mpf(coins.threshold) / 2**20
            exact = mpmath.ldexp(1 / (1 + mpmath.exp(y)), int(shell))
            assert least <= exact <= most
    assert float(np.median(high / low)) < 1 + 1e-8  # at least half of the brackets are narrow


def test_a_threshold_far_off_takes_many_rounds_and_ends() -> None:
    scores = np.array([4, 3, 0, 0])
    drawn = subset(scores, 2, Rate(3, 1), SeededRandomness(5), shift=10.0)
    assert drawn.size == 2


SHAPES = {
    "flat": np.zeros(3000, dtype=np.int64),
    "peak": np.array([1 << 40, *[0] * 2999]),
    "spread": np.arange(3000) << 10,
    "stairs": (np.arange(3000) // 400) << 26,
}


@pytest.mark.parametrize("scores", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("rate", [Rate(10**3, 10**9 << 20), Rate(1, 1 << 10), Rate(1, 1)])
def test_the_threshold_gives_a_mean_of_k_heads(scores: Array, rate: Rate) -> None:
    """The public number of rounds assumes this mean. Sharp scores leave it to rounding errors."""
    for k in (1, 2, 20, 1500):
        gaps = np.sort(scores)[-k] - scores
        log_odds = rate.a / rate.b * gaps.astype(np.float64)
        against = np.minimum(log_odds + balanced(log_odds, gaps, k, rate), 700)
        mean = float((1 / (1 + np.exp(against))).sum())
        assert math.isclose(mean, k, rel_tol=1e-3)


def test_a_set_is_in_public_order_and_may_be_everything() -> None:
    scores = np.array([-5, 7, 0, 2**61 - 1, -(2**61) + 1])
    for k in range(1, 6):
        drawn = subset(scores, k, Rate(1, 10), SystemRandomness()).tolist()
        assert drawn == sorted(set(drawn))
        assert len(drawn) == k
    assert subset(np.array([1, 0]), 1, Rate(10**6, 1), SystemRandomness()).tolist() == [0]
    assert subset(np.array([0, 1]), 2, Rate(1, 1), SystemRandomness()).tolist() == [0, 1]


def test_a_large_loss_takes_the_best_of_many() -> None:
    scores = np.random.default_rng(2).permutation(5000) << 20
    for k in (1, 30, 4990):
        drawn = subset(scores, k, Rate(1, 1 << 10), SystemRandomness())
        assert set((scores[drawn] >> 20).tolist()) == set(range(5000 - k, 5000))


def test_the_public_rounds_suffice() -> None:
    ks = (1, 5, 10, 20, 100, 1000)
    assert [most_rounds(10**6, k) for k in ks] == [121, 253, 355, 500, 1113, 3517]
    assert most_rounds(7, 7) == 0
    assert most_rounds(100, 95) == most_rounds(100, 5)
    for k in ks:
        assert math.isclose(
            (1 - least_acceptance(k)) ** most_rounds(10**6, k), 2**-64, rel_tol=1
        ) or ((1 - least_acceptance(k)) ** most_rounds(10**6, k) < 2**-64)


def test_survivors_are_a_share_of_each_shell() -> None:
    """A coin of shell j is left with probability 2^−j: chi-square over 64 rounds of 4 shells."""
    shells = np.repeat(np.array([0, 1, 3, 6]), 1000)
    shells = np.random.default_rng(1).permutation(shells)
    source, counts, rounds = SeededRandomness(8).stream(), Counter[int](), 64
    groups = Groups.of(shells)
    for _ in range(rounds):
        alive = survivors(groups, source)
        assert len(set(alive.tolist())) == alive.size
        counts.update(shells[alive].tolist())
    assert counts[0] == 1000 * rounds
    for shell in (1, 3, 6):
        mean = 1000 * rounds / 2**shell
        # A correct sampler is off by eight standard deviations with a probability below 10⁻¹⁴.
        assert abs(counts[shell] - mean) < 8 * math.sqrt(mean)
    assert survivors(Groups.of(np.full(70, DEEPEST)), source).size == 0
