"""Every refusal by an account has a reason in words, and a charge that would fit."""

from dataclasses import replace

import pytest

from accounting.account import Limit, admits
from accounting.obstacle import Obstacle, largest_charge, obstacle
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from accounting.rho import FEMTO, pure_femto

PURE = Limit(4 * NANO, 10**6)
RHO = Limit.of(PrivacyLoss(4 * NANO, 10**6), ATTO // 10**6)
GAUSSIAN = replace(RHO, gaussian=True)
NOTHING = (0, 0, 0, 0)
AFTER_GAUSSIAN = (0, 0, FEMTO // 10, 1)


def pure(nano: int, delta: int = 0) -> PrivacyLoss:
    return PrivacyLoss(nano, delta, pure_femto(nano))


NOISE = PrivacyLoss(0, 0, FEMTO // 4, 1)


@pytest.mark.parametrize(
    ("limit", "sums", "charge", "reason"),
    [
        (PURE, NOTHING, pure(4 * NANO), None),
        (PURE, NOTHING, pure(4 * NANO + 1), Obstacle.EPSILON),
        (PURE, NOTHING, pure(NANO, 10**6 + 1), Obstacle.DELTA),
        (PURE, NOTHING, NOISE, Obstacle.COUNTS_EPSILON),
        (RHO, NOTHING, NOISE, Obstacle.NO_PERMISSION),
        (RHO, (4 * NANO, 0, FEMTO // 4, 0), pure(NANO), Obstacle.BOTH),
        (GAUSSIAN, NOTHING, NOISE, None),
        (GAUSSIAN, AFTER_GAUSSIAN, NOISE, Obstacle.RHO),
        (GAUSSIAN, AFTER_GAUSSIAN, pure(2 * NANO), Obstacle.RHO_AFTER_GAUSSIAN),
        (GAUSSIAN, AFTER_GAUSSIAN, pure(NANO // 10, 10**6 + 1), Obstacle.DELTA),
    ],
)
def test_the_reason_of_a_refusal(
    limit: Limit, sums: tuple[int, ...], charge: PrivacyLoss, reason: Obstacle | None
) -> None:
    assert obstacle(limit.amounts, sums, charge.amounts) is reason
    largest = largest_charge(limit.amounts, sums, charge.amounts)
    assert largest.unpriced == charge.unpriced
    fits = largest if charge.unpriced else pure(largest.epsilon_nano, largest.delta_atto)
    allowed = limit.gaussian or not charge.unpriced
    assert admits(limit.amounts, sums, fits.amounts) == allowed
    assert allowed or largest.rho_femto == 0
    next_one = (
        replace(largest, rho_femto=largest.rho_femto + 1)
        if charge.unpriced
        else pure(largest.epsilon_nano + 1)
    )
    assert not admits(limit.amounts, sums, next_one.amounts)
