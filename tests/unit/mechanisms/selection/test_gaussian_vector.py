"""The noisy vector with Gaussian noise, for a loss in ρ alone."""

from __future__ import annotations

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import EdgeInfluence, Exchange, Together
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.selection import LAPLACE
from tests.support.randomness import SeededRandomness

COUNT = 1000
INFLUENCES = [Together(COUNT, 1, 1), Exchange(COUNT, 1), EdgeInfluence(COUNT, 1, 0, 0, 0)]
RHO = PrivacyLoss(0, 0, 5 * 10**12, 1)


@pytest.mark.parametrize("influence, squares", list(zip(INFLUENCES, (1, 2, 2), strict=True)))
def test_the_noise_follows_the_squares_of_a_change(
    influence: Together | Exchange | EdgeInfluence, squares: int
) -> None:
    (step,) = LAPLACE.steps(RHO, influence)
    assert step.loss == RHO
    assert step.bound is not None
    assert step.rho_femto * 0.999 < step.bound.femto() <= step.rho_femto
    assert LAPLACE.deviation(RHO, influence) == Deviation.of(RHO.rho_femto, squares)


def test_the_largest_come_with_values_whose_interval_holds_for_all() -> None:
    influence, random = INFLUENCES[1], SeededRandomness(3)
    scores = np.arange(COUNT, dtype=np.int64) // 2
    error, inside = LAPLACE.error(RHO, influence, 0.95), 0
    for _ in range(200):
        noisy = LAPLACE.top(scores, influence, RHO, COUNT, random, Inline())
        assert (np.diff(noisy.values) <= 0).all()
        inside += bool((abs(noisy.values - scores[noisy.indices]) <= error).all())
    assert 178 <= inside <= 199, "95 % of 200, by five deviations, and not all"
    loud = PrivacyLoss(0, 0, 10**18, 1)
    top = LAPLACE.top(scores * 9, influence, loud, 4, random, Inline())
    assert top.indices.tolist() == [998, 999, 996, 997]


def test_scores_on_a_finer_grid_are_refused() -> None:
    with pytest.raises(UnsupportedQuery):
        LAPLACE.steps(RHO, Exchange(COUNT, 2))
