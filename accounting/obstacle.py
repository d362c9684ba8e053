"""Why a charge does not fit an account, and the largest charge that does.

Both follow from public amounts alone: the limit, the sum of the charges and the new charge.
"""

from collections.abc import Sequence
from enum import StrEnum

from accounting.account import admits, largest_epsilon, remaining
from accounting.privacy_loss import PrivacyLoss


class Obstacle(StrEnum):
    """What an account says of a charge that does not fit it, in words."""

    COUNTS_EPSILON = (
        "counts in epsilon alone and takes no Gaussian noise, so it admits no query that names rho"
    )
    NO_PERMISSION = "does not allow Gaussian noise, so it admits no query that names rho"
    DELTA = "has too little delta left for this charge"
    EPSILON = "has too little epsilon left for this charge"
    RHO = "has too little rho left for this charge"
    RHO_AFTER_GAUSSIAN = (
        "has taken Gaussian noise, so only rho admits charges, and too little rho is left for this "
        "charge"
    )
    BOTH = "has too little left for this charge, in epsilon as well as in rho"


def obstacle(limits: Sequence[int], sums: Sequence[int], charge: Sequence[int]) -> Obstacle | None:
    """The first reason why ``charge`` does not fit, None if it fits (``accounting.account``)."""
    if admits(limits, sums, charge):
        return None
    counts_rho, gaussian = limits[2] > 0, limits[4]
    if charge[3] and not gaussian:
        return Obstacle.NO_PERMISSION if counts_rho else Obstacle.COUNTS_EPSILON
    if sums[1] + charge[1] > limits[1]:
        return Obstacle.DELTA
    if not counts_rho:
        return Obstacle.EPSILON
    if charge[3]:
        return Obstacle.RHO
    return Obstacle.RHO_AFTER_GAUSSIAN if sums[3] else Obstacle.BOTH


def largest_charge(
    limits: Sequence[int], sums: Sequence[int], charge: Sequence[int]
) -> PrivacyLoss:
    """The largest charge that fits, in ρ alone if ``charge`` has no finite ε, else in (ε, δ).

    Its δ is at most that of ``charge``. It is 0 where nothing fits.
    """
    rest = remaining(limits, sums)
    if charge[3]:
        return PrivacyLoss(0, 0, rest.rho_femto if limits[4] else 0, 1)
    return PrivacyLoss(largest_epsilon(limits, sums), min(rest.delta_atto, charge[1]))
