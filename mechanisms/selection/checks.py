"""Checks of all selectors, and the steps by which they spend their loss; from public facts
alone."""

from collections.abc import Callable

from accounting.composition import Step, repeated
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import RhoBound
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.rate import Rate, score_bits


def one_release(
    what: str, loss: PrivacyLoss, k: int, bound: RhoBound | None = None
) -> tuple[Step, ...]:
    """One step: the whole loss is spent on one release of k candidates; its ρ is ``bound``."""
    at_least_one(k)
    Rate.of(loss.epsilon_nano, score_bits(k), k)
    return (Step(what, loss, bound=bound),)


def a_release_each(
    what: str,
    loss: PrivacyLoss,
    k: int,
    bound: Callable[[PrivacyLoss], RhoBound | None] = lambda _: None,
) -> tuple[Step, ...]:
    """k steps with equal shares of the loss; the last share also takes the remaining units.

    ``bound`` returns the ρ of a draw at its share.
    """
    at_least_one(k)
    if k > loss.epsilon_nano:
        raise UnsupportedQuery("the share of one draw is less than the smallest loss, 10⁻⁹")
    steps = repeated(what, loss, k, bound)
    for step in steps:
        Rate.of(step.loss.epsilon_nano, score_bits(k))
    return steps


def enough(k: int, n: int) -> None:
    """Raise ValueError unless 1 ≤ k ≤ n."""
    at_least_one(k)
    if k > n:
        raise ValueError(f"{k} distinct candidates cannot be drawn from {n}")


def at_least_one(k: int) -> None:
    if k < 1:
        raise ValueError(f"at least one candidate is drawn, got k = {k}")
