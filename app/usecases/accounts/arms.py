"""The measure that counts for an account now: ε, or ρ where more of its limit is left.

It chooses what people are shown. The guard of the ledger admits a charge that fits by either.
"""

from dataclasses import dataclass
from fractions import Fraction

from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss, format_units, parse_units
from app.contract.amounts import MIN_QUERY_EPSILON_NANO
from app.contract.budgets import AccountBalance

#: In percent of the allowance: an account with less than this left is nearly spent.
LOW = 15


@dataclass(frozen=True)
class Arm:
    """One of the two measures by which charges fit; ``index`` is its place among the amounts."""

    symbol: str
    index: int

    def of(self, loss: PrivacyLoss) -> int:
        """The part of a loss, in units of the measure."""
        return loss.amounts[self.index]

    def limit(self, account: AccountBalance) -> int:
        return account.allowance.amounts[self.index]

    def rest(self, account: AccountBalance) -> int:
        return self.of(account.remaining)

    def share(self, account: AccountBalance) -> int:
        """What is left of the limit in percent, rounded down; 0 if the limit is 0."""
        limit = self.limit(account)
        return self.rest(account) * 100 // limit if limit else 0

    def format(self, units: int | Fraction) -> str:
        """The symbol and a decimal number, rounded down to a whole unit."""
        return f"{self.symbol} {format_units(int(units), MEASURES[self.index].digits)}"


EPSILON, RHO = Arm("ε", 0), Arm("ρ", 2)


def arm_of(account: AccountBalance) -> Arm:
    """ρ if the account counts it and more of it is left, else ε."""
    arms = (EPSILON, RHO) if account.counts_rho else (EPSILON,)
    return max(arms, key=lambda arm: arm.share(account))


def other_arm(account: AccountBalance) -> Arm | None:
    """The measure that counts beside ``arm_of``; None if the account counts in ε alone."""
    if not account.counts_rho:
        return None
    return RHO if arm_of(account) is EPSILON else EPSILON


def admitting(account: AccountBalance, charge: PrivacyLoss) -> list[Arm]:
    """The measures by which the account takes the charge now; δ must fit as well.

    Charges in ε fit by ε alone while nothing was charged that has no finite ε.
    """
    sums = account.spent + charge
    fits = {
        EPSILON: not sums.unpriced and sums.epsilon_nano <= account.allowance.epsilon_nano,
        RHO: account.counts_rho and sums.rho_femto <= account.allowance.rho_femto,
    }
    return [arm for arm, is_fitting in fits.items() if is_fitting]


def share_left(account: AccountBalance) -> int:
    """What is left of the allowance, in percent of the measure that counts now."""
    return arm_of(account).share(account)


def is_exhausted(account: AccountBalance) -> bool:
    """True if not even the smallest charge fits."""
    return parse_units(account.largest_epsilon, 9) < MIN_QUERY_EPSILON_NANO


def is_low(account: AccountBalance) -> bool:
    """True if less than ``LOW`` percent of an allowance is left."""
    return is_exhausted(account) or share_left(account) < LOW
