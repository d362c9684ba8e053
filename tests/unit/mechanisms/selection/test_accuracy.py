"""The public accuracy bounds: they hold for the exact laws, and their inverse inverts them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.privacy_loss import PrivacyLoss
from mechanisms.selection import SELECTORS, Draws, Selector

CONFIDENCES = (0.5, 0.8, 0.95)
every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)


@every_selector
@pytest.mark.parametrize("draws", ["peeled", "one_shot"])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2), (4, 3)])
@pytest.mark.long
def test_the_bound_holds_for_every_score_vector(
    selector: Selector, draws: Draws, n: int, k: int
) -> None:
    """ε = 3k on whole scores from 0 to 4: λ = 3/2 a unit."""
    loss = PrivacyLoss(3 * 10**9 * k)
    bounds = {confidence: selector.accuracy(n, loss, k, confidence) for confidence in CONFIDENCES}
    p = Fraction(math.exp(-1.5)).limit_denominator(10**4)
    for scores in product(range(0, 5, 2), repeat=n):
        best = sorted(scores, reverse=True)
        law = selector.ordered_probabilities(scores, p, k, draws)
        for confidence, bound in bounds.items():
            missed = sum(
                share
                for answer, share in law.items()
                if any(best[j] - scores[r] > bound for j, r in enumerate(answer))
            )
            assert missed <= 1 - confidence


@every_selector
@given(
    n=st.integers(2, 10**6),
    k=st.integers(1, 50),
    error=st.floats(1e-3, 1e3),
    confidence=st.floats(0.5, 0.999),
)
def test_the_loss_for_an_error_reaches_it_and_not_much_less(
    selector: Selector, n: int, k: int, error: float, confidence: float
) -> None:
    k = min(k, n)
    loss = selector.loss_for(n, error, k, confidence)
    # The factor 1 + 10⁻¹² allows for the rounding of doubles.
    assert selector.accuracy(n, loss, k, confidence) <= error * (1 + 1e-12)
    if loss.epsilon_nano > k:
        less = loss - PrivacyLoss(k)
        assert selector.accuracy(n, less, k, confidence) >= error * (1 - 1e-12)


def test_the_bounds_of_one_draw_in_numbers() -> None:
    """2·ln(99·20) and 2·ln(49.5·20) for n = 100, ε = 1, 95 %."""
    one = PrivacyLoss(10**9)
    exponential = SELECTORS["exponential"].accuracy(100, one, 1, 0.95)
    assert math.isclose(exponential, 2 * math.log(1980))
    permute_and_flip = SELECTORS["permute_and_flip"].accuracy(100, one, 1, 0.95)
    assert math.isclose(exponential - permute_and_flip, 2 * math.log(2))


@every_selector
def test_a_single_candidate_is_never_wrong(selector: Selector) -> None:
    assert selector.accuracy(1, PrivacyLoss(1), 1, 0.99) == 0
    assert selector.loss_for(1, 0.5, 1, 0.99) == PrivacyLoss(1)


@every_selector
def test_senseless_questions_are_refused(selector: Selector) -> None:
    one = PrivacyLoss(10**9)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            selector.accuracy(5, one, 1, confidence)
    for error in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="error"):
            selector.loss_for(5, error, 1, 0.9)
    with pytest.raises(ValueError, match="loss"):
        selector.accuracy(5, PrivacyLoss(2), 3, 0.9)
    with pytest.raises(ValueError, match="cannot be drawn"):
        selector.accuracy(5, one, 6, 0.9)
