"""All small adversaries who choose randomised responses by earlier answers, under the guard.

Randomised response is the worst of all ε-DP releases. The loss of a transcript is the sum of ±ε of
its responses. The adversary maximises the share of the probability by which answers break the
factor e^E: the mean of (1 − e^(E − loss))⁺. Where ρ admits, it must be at most δ_c.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp

import pytest

from accounting.account import Limit, admits
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from accounting.rho import pure_femto

Amounts = tuple[int, ...]
#: Called with the sums of an account and the amounts of a query. Returns what the query adds to the
#: sums, or None if it is refused.
Guard = Callable[[Amounts, Amounts], Amounts | None]
UNIT = NANO // 20
#: The ε that the adversary may choose for a query, in multiples of ``UNIT``.
CHOICES = (1, 3)
ACCOUNTS = [
    Limit.of(PrivacyLoss(12 * UNIT), ATTO // 1000),
    Limit.of(PrivacyLoss(16 * UNIT), ATTO // 10**4),
]


def charge(units: int) -> Amounts:
    return (units * UNIT, 0, pure_femto(units * UNIT), 0)


def added(sums: Amounts, more: Amounts) -> Amounts:
    return tuple(a + b for a, b in zip(sums, more, strict=True))


def worst(limit: Limit, guard: Guard) -> float:
    """The most that any adaptive adversary gets, by every choice in every state."""
    unit = UNIT / NANO

    @cache
    def value(sums: Amounts, loss: int) -> float:
        best = max(0.0, 1 - exp(limit.epsilon_nano / NANO - loss * unit))
        for units in CHOICES:
            more = charge(units)
            counted = guard(sums, more)
            if counted is not None:
                truth = 1 / (1 + exp(-units * unit))
                after = added(sums, counted)
                both = value(after, loss + units), value(after, loss - units)
                best = max(best, truth * both[0] + (1 - truth) * both[1])
        return best

    return value((0, 0, 0, 0), 0)


@pytest.mark.parametrize("limit", ACCOUNTS)
def test_the_way_by_epsilon_adds_nothing_to_the_way_by_rho(limit: Limit) -> None:
    def both(sums: Amounts, more: Amounts) -> Amounts | None:
        return more if admits(limit.amounts, sums, more) else None

    def rho_alone(sums: Amounts, more: Amounts) -> Amounts | None:
        return more if sums[2] + more[2] <= limit.rho_femto else None

    share = worst(limit, both)
    assert share == worst(limit, rho_alone)
    assert 0 < share <= limit.composition_atto / ATTO


def test_without_a_limit_in_rho_the_factor_holds_for_certain() -> None:
    limit = Limit.of(PrivacyLoss(10 * UNIT))
    assert worst(limit, lambda sums, more: more if admits(limit.amounts, sums, more) else None) == 0


@pytest.mark.parametrize("limit", ACCOUNTS)
@pytest.mark.parametrize("all_of_epsilon", [True, False])
def test_the_tail_of_one_arm_with_the_sums_of_the_other_is_caught(
    limit: Limit, all_of_epsilon: bool
) -> None:
    """Known to fail: ρ admits by the sum of those queries alone that ε did not admit.

    ε counts all queries, or those alone that it admitted, as if there were two purses.
    """

    def purses(sums: Amounts, more: Amounts) -> Amounts | None:
        if sums[0] + more[0] <= limit.epsilon_nano:
            return (more[0], 0, 0, 0)
        if sums[2] + more[2] <= limit.rho_femto:
            return (more[0] * all_of_epsilon, 0, more[2], 0)
        return None

    assert worst(limit, purses) > limit.composition_atto / ATTO
