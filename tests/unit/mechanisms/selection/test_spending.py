"""How a selector spends its loss: exactly all of it, decided before anything private is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.composition import Step, total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.selection import SELECTORS, Draws, Selector

every_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
every_draws = pytest.mark.parametrize("draws", ["peeled", "one_shot"])


@every_selector
@every_draws
@given(epsilon=st.integers(10**7, 10**13), delta=st.integers(0, 10**18 - 1), k=st.integers(1, 2000))
def test_the_steps_add_up_to_the_loss(
    selector: Selector, draws: Draws, epsilon: int, delta: int, k: int
) -> None:
    loss = PrivacyLoss(epsilon, delta)
    assert total(selector.steps(loss, k, draws)) == loss


def test_the_last_peeled_draw_takes_what_is_left() -> None:
    assert SELECTORS["permute_and_flip"].steps(PrivacyLoss(11), 3, "peeled") == (
        Step("permute-and-flip draw", PrivacyLoss(3), 2),
        Step("permute-and-flip draw", PrivacyLoss(5)),
    )


@pytest.mark.parametrize(
    ("name", "draws"),
    [("permute_and_flip", "one_shot"), ("exponential", "one_shot"), ("exponential", "peeled")],
)
def test_one_release_is_one_step(name: str, draws: Draws) -> None:
    (step,) = SELECTORS[name].steps(PrivacyLoss(10**9), 7, draws)
    assert (step.loss, step.times) == (PrivacyLoss(10**9), 1)


@every_selector
@every_draws
def test_shares_below_the_smallest_loss_are_refused(selector: Selector, draws: Draws) -> None:
    for epsilon, k in [(0, 1), (9, 10)]:
        with pytest.raises(UnsupportedQuery):
            selector.steps(PrivacyLoss(epsilon), k, draws)
    assert total(selector.steps(PrivacyLoss(10), 10, draws)) == PrivacyLoss(10)


@every_selector
@every_draws
def test_more_draws_than_any_grid_admits_are_refused(selector: Selector, draws: Draws) -> None:
    """The refusal is immediate: no list of that length is built."""
    with pytest.raises(UnsupportedQuery):
        selector.steps(PrivacyLoss(10**14), 2**32, draws)


@every_selector
def test_losses_beyond_exact_arithmetic_are_refused(selector: Selector) -> None:
    with pytest.raises(UnsupportedQuery):
        selector.steps(PrivacyLoss(10**18), 2048, "one_shot")


@every_selector
@every_draws
@pytest.mark.parametrize("k", [0, -1])
def test_no_draw_is_no_query(selector: Selector, draws: Draws, k: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        selector.steps(PrivacyLoss(10**9), k, draws)


@pytest.mark.parametrize(("name", "selector"), SELECTORS.items())
def test_selectors_describe_themselves(name: str, selector: Selector) -> None:
    assert selector.name == name
    assert all((selector.title, selector.description, selector.source))
