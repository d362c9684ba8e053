"""Samplers against their laws; each check fails by chance less than once in 10⁶ runs."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.noise.race import weighted_race
from mechanisms.noise.rate import Rate
from mechanisms.noise.uniform import uniform
from mechanisms.statistics.release.ladder import draw, ladder_probability, ladder_rate, weights
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import p_value

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("size", [1, 2, 3, 10, 64])
def test_uniform_numbers(size: int) -> None:
    source = SeededRandomness(size).stream()
    drawn = [uniform(size, source) for _ in range(20_000)]
    counts = np.bincount(drawn, minlength=size)
    assert counts.size == size
    if size > 1:
        assert p_value(counts, np.full(size, 1 / size)) > FALSE_ALARM


def test_uniform_numbers_of_several_words() -> None:
    count = 3 << 70
    source = SeededRandomness(7).stream()
    drawn = [uniform(count, source) * 3 // count for _ in range(9_000)]
    assert p_value(np.bincount(drawn, minlength=3), np.full(3, 1 / 3)) > FALSE_ALARM


@pytest.mark.long
@pytest.mark.parametrize("widen", [1.0, 2.0**44])
@pytest.mark.parametrize("tail", [False, True])
def test_races_of_groups(tail: bool, widen: float) -> None:
    sizes = np.array([1, 0, 6, 2, 40], np.int64)
    rate, randomness = Rate(NANO, 2 * NANO), SeededRandomness(11)
    # Widened brackets of arrivals overlap, so the exact refinement decides. It is slower, so there
    # are fewer runs.
    runs = 10_000 if widen == 1 else 300
    drawn = [weighted_race(sizes, rate, randomness, tail=tail, widen=widen) for _ in range(runs)]
    law = sizes * np.exp(-0.5 * np.arange(5))
    if tail:
        law[-1] /= 1 - exp(-0.5)
    assert set(drawn) <= {0, 2, 3, 4}
    counts = np.bincount(drawn, minlength=5)
    assert p_value(counts[[0, 2, 3, 4]], (law / law.sum())[[0, 2, 3, 4]]) > FALSE_ALARM


@pytest.mark.long
@pytest.mark.parametrize("widths", [[1, 2, 2, 3], [0, 0, 4], [3]])
def test_the_ladder(widths: list[int]) -> None:
    local = np.array(widths, np.int64)
    assert weights(local).tolist() == [1, *(2 * width for width in widths)]
    rate, randomness = ladder_rate(PrivacyLoss(NANO)), SeededRandomness(13)
    drawn = np.array([draw(local, rate, randomness) for _ in range(8_000)])
    inner = range(-12, 13)
    law = np.array([ladder_probability(y, local, 1.0) for y in inner])
    counts = np.array([(drawn == y).sum() for y in inner])
    beyond = 1 - law.sum()
    assert beyond > 0
    assert (
        p_value(np.append(counts, (np.abs(drawn) > 12).sum()), np.append(law, beyond)) > FALSE_ALARM
    )
