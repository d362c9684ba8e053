"""Noisy max of this project and of OpenDP against its law, and mistakes that are detected.

Samples of 2·10⁶ selections, each rejected below 10⁻⁶: with the three of each kind a correct sampler
fails for 9·10⁻⁶ of all seeds at most, and seeds are fixed. OpenDP takes no seed: its samples are
judged by the exact law of each count.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

from mechanisms.model.executor import Inline
from mechanisms.noise.addition import add_noise
from mechanisms.noise.geometric import add_geometric
from mechanisms.noise.noisy_max import noisy_max
from mechanisms.noise.race import race
from mechanisms.noise.rate import Rate
from mechanisms.selection.laws import (
    exponential_probabilities,
    one_shot_probabilities,
    peeled_probabilities,
    permute_and_flip_probabilities,
)
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.batches import noisy_max_winners, race_winners
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, base, p_value

DRAWS = 2 * 10**6
SCORES = [(0, 0, 0), (0, 1, 2, 3, 4), (7, 1, 1, 6, 6)]
BITS = 3
EPSILON = 10**9

scores_of_each = pytest.mark.parametrize("scores", SCORES, ids=str)


def fit(winners: np.ndarray, law: list[Fraction]) -> float:
    return p_value(np.bincount(winners, minlength=len(law)), law)


def on_grid(scores: tuple[int, ...]) -> list[int]:
    return [score << BITS for score in scores]


@scores_of_each
def test_noisy_max_is_permute_and_flip(scores: tuple[int, ...]) -> None:
    rate = Rate.of(EPSILON, BITS)
    winners = noisy_max_winners(on_grid(scores), rate, DRAWS, 11)
    assert fit(winners, permute_and_flip_probabilities(on_grid(scores), base(rate))) > FALSE_ALARM


@scores_of_each
def test_the_race_is_the_exponential_mechanism(scores: tuple[int, ...]) -> None:
    rate = Rate.of(EPSILON, BITS)
    winners = race_winners(on_grid(scores), rate, DRAWS, 12)
    assert fit(winners, exponential_probabilities(on_grid(scores), base(rate))) > FALSE_ALARM


@scores_of_each
def test_geometric_noise_with_uniform_ties_is_the_same_law(scores: tuple[int, ...]) -> None:
    """And ties to the lowest index are another one; on a coarse grid, where ties are common."""
    rate = Rate.of(EPSILON, 0)
    tiled = np.tile(np.array(scores, dtype=np.int64), DRAWS // 10)
    noisy = add_noise(add_geometric, tiled, rate, SeededRandomness(13), Inline())
    noisy = noisy.reshape(-1, len(scores))
    law = permute_and_flip_probabilities(scores, base(rate))
    fractions = np.random.default_rng(13).random(noisy.shape)
    assert fit((noisy + fractions).argmax(axis=1), law) > FALSE_ALARM
    assert fit(noisy.argmax(axis=1), law) < FALSE_ALARM


@pytest.mark.parametrize(
    "wrong",
    [Rate(EPSILON, 10**9 << BITS), Rate.of(EPSILON, BITS + 1), Rate.of(EPSILON, BITS - 1)],
    ids=["no factor two", "noise a bit coarser", "noise a bit finer"],
)
@pytest.mark.parametrize("scores", SCORES[1:], ids=str)
def test_a_wrong_rate_is_caught(wrong: Rate, scores: tuple[int, ...]) -> None:
    p = base(Rate.of(EPSILON, BITS))
    law = permute_and_flip_probabilities(on_grid(scores), p)
    assert fit(noisy_max_winners(on_grid(scores), wrong, DRAWS // 10, 14), law) < FALSE_ALARM
    law = exponential_probabilities(on_grid(scores), p)
    assert fit(race_winners(on_grid(scores), wrong, DRAWS // 10, 14), law) < FALSE_ALARM


@pytest.mark.long
@scores_of_each
@pytest.mark.parametrize(
    ("measure", "law"),
    [
        ("max_divergence", permute_and_flip_probabilities),
        ("zero_concentrated_divergence", exponential_probabilities),
    ],
)
def test_opendp_draws_from_the_same_laws(
    scores: tuple[int, ...], measure: str, law: Callable[..., list[Fraction]]
) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rate = Rate.of(EPSILON, BITS)
    space = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.linf_distance(T=dp.i32)
    select = dp.m.make_noisy_max(*space, getattr(dp, measure)(), scale=rate.b / rate.a)
    grid = on_grid(scores)
    winners = np.array([select(grid) for _ in range(5_000)])
    counts = np.bincount(winners, minlength=len(grid))
    # A correct selector fails in any of the six samples with a probability of at most 6·10⁻¹⁰, by
    # the union bound over all counts.
    for count, share in zip(counts.tolist(), law(grid, base(rate)), strict=True):
        assert binomtest(count, winners.size, float(share)).pvalue > 1e-10 / len(grid)


TOP = (0, 2, 3, 1)


def drawn_by(draw: Callable[[SeededRandomness], np.ndarray]) -> list[tuple[int, ...]]:
    randomness = SeededRandomness(15)
    return [tuple(draw(randomness).tolist()) for _ in range(20_000)]


def ordered_fit(drawn: list[tuple[int, ...]], law: dict) -> float:
    places = {answer: place for place, answer in enumerate(law)}
    return fit(np.array([places[answer] for answer in drawn]), list(law.values()))


@pytest.mark.long
def test_the_ordered_top_has_its_law() -> None:
    """2·10⁴ draws of two of four; the check also distinguishes the different laws."""
    rate = Rate.of(4 * EPSILON, 0, 2)
    scores, p = np.array(TOP), base(rate)
    one_shot = one_shot_probabilities(TOP, p, 2)
    plackett_luce = peeled_probabilities(exponential_probabilities, TOP, p, 2)

    def noisy(randomness: SeededRandomness) -> np.ndarray:
        return noisy_max(scores, 2, rate, randomness, Inline())

    def raced(randomness: SeededRandomness) -> np.ndarray:
        return race(scores, 2, rate, randomness, Inline())

    by_noise, by_race = drawn_by(noisy), drawn_by(raced)
    assert ordered_fit(by_noise, one_shot) > FALSE_ALARM
    assert ordered_fit(by_race, plackett_luce) > FALSE_ALARM
    assert ordered_fit(by_noise, plackett_luce) < FALSE_ALARM
    assert ordered_fit(by_race, one_shot) < FALSE_ALARM


def test_one_candidate_is_always_selected() -> None:
    for draw in (noisy_max, race):
        drawn = draw(np.array([5]), 1, Rate.of(1, 20), SeededRandomness(0), Inline())
        assert drawn.tolist() == [0]
