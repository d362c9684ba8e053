"""A selector draws distinct candidates by its stated law, and each draw spends its step."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate
from mechanisms.selection import SELECTORS, Draws, Selector
from mechanisms.selection.permute_and_flip import PermuteAndFlip
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, base, p_value

every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
every_draws = pytest.mark.parametrize("draws", ["peeled", "one_shot"])
SCORES = (0, 2, 3, 1)


@every_selector
@every_draws
@settings(deadline=None, max_examples=30)
@given(
    scores=st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=12),
    data=st.data(),
    epsilon=st.integers(12, 10**13),
)
def test_the_drawn_are_distinct_and_the_scores_stay_as_they_are(
    selector: Selector, draws: Draws, scores: list[int], data: st.DataObject, epsilon: int
) -> None:
    k = data.draw(st.integers(1, len(scores)))
    array = np.array(scores)
    drawn = selector.top(array, 20, PrivacyLoss(epsilon), k, draws, SystemRandomness(), Inline())
    assert drawn.dtype == np.int64
    assert drawn.shape == (k,)
    assert set(drawn.tolist()) <= set(range(len(scores)))
    assert len(set(drawn.tolist())) == k
    assert array.tolist() == scores


@every_selector
@every_draws
def test_a_large_loss_finds_the_best_in_order(selector: Selector, draws: Draws) -> None:
    """ε = 10⁴ for gaps of one: an error with probability below 10⁻⁵⁰⁰."""
    scores = np.random.Generator(np.random.PCG64(1)).permutation(500) << 20
    drawn = selector.top(scores, 20, PrivacyLoss(10**13), 4, draws, SystemRandomness(), Inline())
    assert (scores[drawn] >> 20).tolist() == [499, 498, 497, 496]


@pytest.mark.long
@every_selector
@every_draws
def test_ordered_answers_have_the_law_beside_the_selector(selector: Selector, draws: Draws) -> None:
    """8,000 draws of two of four; false alarm 10⁻⁶ for each of the four cases."""
    loss, k, bits = PrivacyLoss(4 * 10**9), 2, 1
    scores = np.array(SCORES) << bits
    law = selector.ordered_probabilities(
        scores.tolist(), base(Rate.of(loss.epsilon_nano, bits, k)), k, draws
    )
    randomness = SeededRandomness(21)
    seen = Counter(
        tuple(selector.top(scores, bits, loss, k, draws, randomness, Inline()).tolist())
        for _ in range(8_000)
    )
    observed = np.array([seen[answer] for answer in law])
    assert observed.sum() == 8_000
    assert p_value(observed, list(law.values())) > FALSE_ALARM


@every_selector
@every_draws
def test_a_selection_is_a_top_of_one(selector: Selector, draws: Draws) -> None:
    p = Fraction(1, 3)
    law = selector.ordered_probabilities(SCORES, p, 1, draws)
    assert selector.probabilities(SCORES, p) == [law[(r,)] for r in range(len(SCORES))]


def test_only_permute_and_flip_tells_the_ways_to_draw_apart() -> None:
    p = Fraction(1, 3)
    differs = {
        name: selector.ordered_probabilities(SCORES, p, 2, "peeled")
        != selector.ordered_probabilities(SCORES, p, 2, "one_shot")
        for name, selector in SELECTORS.items()
    }
    assert differs == {"permute_and_flip": True, "exponential": False}


@pytest.mark.parametrize("epsilon", [11, 10**9 + 1])
def test_every_peeled_draw_runs_at_the_loss_of_its_step(
    epsilon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    selector, loss = SELECTORS["permute_and_flip"], PrivacyLoss(epsilon)
    used: list[Rate] = []
    true_draw = PermuteAndFlip.sample

    def noisy_max(scores, k, rate, randomness, executor):  # type: ignore[no-untyped-def]
        used.append(rate)
        return true_draw(scores, k, rate, randomness, executor)

    monkeypatch.setattr(PermuteAndFlip, "sample", staticmethod(noisy_max))
    scores = np.arange(5)
    selector.top(scores, 20, loss, 3, "peeled", SeededRandomness(0), Inline())
    assert used == [Rate.of(share.epsilon_nano, 20) for share in loss.split(3)]
    assert sum(rate.a for rate in used) == epsilon


@every_selector
@every_draws
def test_more_than_there_are_cannot_be_drawn(selector: Selector, draws: Draws) -> None:
    for n, k in [(0, 1), (3, 4)]:
        with pytest.raises(ValueError, match="cannot be drawn"):
            selector.top(
                np.zeros(n, dtype=np.int64),
                20,
                PrivacyLoss(10**9),
                k,
                draws,
                SeededRandomness(0),
                Inline(),
            )


@every_selector
@every_draws
def test_a_draw_refuses_what_its_price_refuses(selector: Selector, draws: Draws) -> None:
    with pytest.raises(UnsupportedQuery):
        selector.top(np.arange(9), 20, PrivacyLoss(3), 4, draws, SeededRandomness(0), Inline())
