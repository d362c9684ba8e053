"""Shared tools to predict the accuracy of an answer, and to find the loss that reaches a target."""

from collections.abc import Callable, Mapping

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.number import CONFIDENCE as CONFIDENCE
from mechanisms.statistics.release.mechanism import significant as significant

#: The name of an accuracy that a quote predicts or takes as a target: how far the score of a
#: selected candidate is below the best score. It is counted in units of the score; one change of
#: the records moves a score by one unit at most.
SCORE_TARGET = "score_below_best"


def only(target: Mapping[str, float], name: str) -> float:
    """Returns the value of the target ``name``. Raises: UnsupportedQuery for any other target."""
    if set(target) != {name}:
        raise UnsupportedQuery("no such accuracy target", supported={"target": [name]})
    return target[name]


def least_loss(
    noise: Callable[[PrivacyLoss], float],
    target: float,
    steps: Callable[[PrivacyLoss], object] = lambda _: None,
) -> PrivacyLoss:
    """Returns the least loss at which the scale ``noise`` is at most ``target``.

    ``noise`` is the scale of the noise at a loss, and it does not grow with the loss. It or
    ``steps`` raises UnsupportedQuery for a loss that is too small to be divided among the releases.
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
