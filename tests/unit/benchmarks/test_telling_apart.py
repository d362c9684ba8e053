"""The exact chance behind "told apart": never understated, small where there is a difference."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmarks.service.one_clock import ALPHA
from benchmarks.service.telling_apart import Pair, _sign_test, _signed_ranks, chance_if_alike


@pytest.mark.parametrize(
    ("values", "count"), [((0.0, 1.0), 5), ((3.0, 1.0, 2.0), 4), ((0.0, 0.0, 1.0, 1.0), 3)]
)
def test_the_chance_is_never_understated(values: tuple[float, ...], count: int) -> None:
    """Over every way that coins may order the pairs: P(chance ≤ a) ≤ a, exactly."""
    drawn = [(values[i % len(values)], values[(i + 1) % len(values)]) for i in range(count)]
    chances = []
    for swaps in product((False, True), repeat=count):
        pairs = [(y, x) if swap else (x, y) for (x, y), swap in zip(drawn, swaps, strict=True)]
        chances.append(chance_if_alike(pairs))
    for level in set(chances):
        assert Fraction(sum(chance <= level for chance in chances), len(chances)) <= level


def test_differences_are_seen_and_noise_is_not() -> None:
    random_one = random.Random(5)
    alike = [(random_one.random(), random_one.random()) for _ in range(300)]
    shifted = [(x, y + 1) for x, y in alike[:32]]
    # These two samples have the same mean and a different spread, which only the tests at
    # thresholds detect.
    wider: list[Pair] = [(0.5 + (x - 0.5) / 100, 3 * (i % 2)) for i, (x, _) in enumerate(alike)]
    assert chance_if_alike(alike) > Fraction(1, 1000)
    assert chance_if_alike(shifted) <= ALPHA
    assert chance_if_alike(wider) <= ALPHA
    assert chance_if_alike([]) == chance_if_alike([(1.0, 1.0)] * 50) == 1


def test_a_shift_below_the_noise_is_seen_by_its_ranks() -> None:
    """Signs alone miss what lies at 0.4 standard deviations of the difference in 300 pairs."""
    random_one = random.Random(7)
    pairs = [(random_one.gauss(0, 1), random_one.gauss(0.55, 1)) for _ in range(300)]
    signs = sum(x < y for x, y in pairs)
    assert _sign_test(signs, 300 - signs) > ALPHA
    assert chance_if_alike(pairs) <= ALPHA


@pytest.mark.parametrize("differences", [[1.0], [1.0, -2.0, 3.0, 3.0], [0.5, 0.5, -0.5, 2.0, -7.0]])
def test_signed_ranks_are_counted_exactly(differences: list[float]) -> None:
    """Against every choice of signs, on ranks that ``scipy`` has made."""
    ranks = rankdata(np.abs(differences))

    def one_sided(signs: tuple[int, ...]) -> float:
        return abs(float(np.dot(signs, ranks)))

    seen = one_sided(tuple(1 if one > 0 else -1 for one in differences))
    sums = [one_sided(signs) for signs in product((-1, 1), repeat=len(differences))]
    expected = Fraction(sum(one >= seen for one in sums), len(sums))
    assert _signed_ranks(differences) == expected
