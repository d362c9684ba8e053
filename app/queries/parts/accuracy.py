"""How accuracy is predicted and reached: the probability, the digits, the targets, the search."""

from collections.abc import Callable, Mapping

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO
from mechanisms.model.errors import UnsupportedQuery

#: Quotes say how accurate an answer is with this probability.
CONFIDENCE = 0.95
#: The accuracy that selections predict and may have to reach: how many steps of the sensitivity
#: the score of a selected candidate falls below the best.
SCORE_TARGET = "score_below_best"


def only(target: Mapping[str, float], name: str) -> float:
    """The value of the one target that a query has. Raises: UnsupportedQuery for any other."""
    if set(target) != {name}:
        raise UnsupportedQuery("no such accuracy target", supported={"target": [name]})
    return target[name]


def significant(value: float) -> float:
    """Four significant digits: predictions are bounds, not measurements."""
    return float(f"{value:.4g}")


def least_loss(
    steps: Callable[[PrivacyLoss], object], noise: Callable[[PrivacyLoss], float], target: float
) -> PrivacyLoss:
    """The least loss with ``noise`` at most ``target``.

    ``steps`` raises UnsupportedQuery for a loss that is too small to be divided among the releases.
    ``noise`` is the scale of the noise at a loss, and it does not grow with the loss.
    """
    if not target > 0:
        raise UnsupportedQuery("a scale of noise is positive")

    def reached(nano: int) -> bool:
        loss = PrivacyLoss(nano)
        try:
            steps(loss)
            return noise(loss) <= target
        except UnsupportedQuery:
            return False

    if not reached(MAX_QUERY_EPSILON_NANO):
        raise UnsupportedQuery("no epsilon up to 1000000 reaches this scale of noise")
    low, high = 0, MAX_QUERY_EPSILON_NANO
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return PrivacyLoss(high)
