"""Shares of a private tree in ρ: every path spends the whole loss, to the last femto-ρ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.composition import for_group, total, total_rho
from accounting.conversion import rho_limit
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from accounting.rho import GaussianNoise, Pure
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.selection import SELECTORS
from mechanisms.trees.id3.gaussian_budget import GaussianBudget

selectors = st.sampled_from([SELECTORS[name] for name in SELECTORS])


def loss_of(femto: int) -> PrivacyLoss:
    return PrivacyLoss(0, 0, femto, 1)


@given(st.integers(10**10, 10**17), st.integers(0, 20), selectors)
def test_every_path_spends_at_most_the_loss_and_nearly_all(
    femto: int, splits: int, selector: object
) -> None:
    budget = GaussianBudget(loss_of(femto), splits, selector)  # type: ignore[arg-type]
    steps = budget.steps(budget.selector, [2] * max(splits, 1), 2)
    assert total(steps) == budget.loss
    assert total_rho(steps) == femto
    for members in (1, 4):
        for step in for_group(steps, members):
            assert step.bound is not None
            assert step.bound.femto(members) <= step.rho_femto
            assert step.as_dict()["epsilon"] is None
    count = GaussianNoise(budget.count_law.square, 1).of_group(1) if splits else 0
    split = budget.selector.rho_bound(budget.split_loss, 1).of_group(1) if splits else 0
    for depth in range(splits + 1):
        counts = depth if depth == splits else depth + 1
        leaf = GaussianNoise(budget.leaf_law(depth).square, 1).of_group(1)
        spent = (counts * count + depth * split + leaf) * 10**15
        assert spent <= femto
        # Standard deviations are multiples of 1/1024. So at a large ρ the noise is slightly wider
        # than needed, and some of ρ stays unspent.
        assert spent > femto * 0.9 or femto > 10**15


def test_shares_are_those_of_equal_accuracy() -> None:
    """Gaussian counts at depth 5 with the noise of ε = 0.5: 5, 40 and 339 fit E = 1, 3 and 10."""
    exponential, share = SELECTORS["exponential"], 4 * 0.5 / 29
    femto = round((share**2 / 4 + 5 * (share**2 / 64 + share**2 / 8)) * 10**15)
    budget = GaussianBudget(loss_of(femto), 5, exponential)
    assert float(budget.count_law.square) ** 0.5 == pytest.approx(4 * 2**0.5 / share, rel=1e-3)
    assert float(budget.leaf_law(5).square) ** 0.5 == pytest.approx(2**0.5 / share, rel=1e-3)
    assert float(budget.split_loss.epsilon()) == pytest.approx(share, rel=1e-3)
    room = [rho_limit(e * NANO, ATTO // 10**6) for e in (1, 3, 10)]
    assert [one // femto for one in room] == [5, 40, 339]


def test_the_exponential_mechanism_splits_at_twice_the_epsilon() -> None:
    at = {name: GaussianBudget(loss_of(10**13), 3, SELECTORS[name]).split_loss.epsilon_nano
          for name in ("exponential", "permute_and_flip")}  # fmt: skip
    assert at["exponential"] > 1.99 * at["permute_and_flip"]
    # An ε that is larger by 10⁻⁹ would cost more ρ than the share of the split.
    split = 10**13 * 8 // 43
    assert Pure(PrivacyLoss(at["permute_and_flip"] + 1).epsilon()).femto() > split


def test_a_tree_without_splits_spends_all_on_its_leaf() -> None:
    budget = GaussianBudget(loss_of(10**13), 0, SELECTORS["exponential"])
    (step,) = budget.steps(budget.selector, [2], 3)
    assert (step.loss, step.times) == (loss_of(10**13), 3)


def test_a_rho_too_small_for_its_levels_is_refused() -> None:
    for femto in (1, 10**4):
        with pytest.raises(UnsupportedQuery):
            GaussianBudget(loss_of(femto), 5, SELECTORS["exponential"])
