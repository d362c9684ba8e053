"""The loss in ρ that experiments set beside a loss in ε."""

from accounting.conversion import MOST_EPSILON_NANO, rho_limit
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss

#: The δ of the accounts here, called δ_c. An account promises (ε, δ_c) for all its queries
#: together.
COMPOSITION_DELTA = ATTO // 10**6


def rho_of(epsilon: float) -> PrivacyLoss:
    """The most ρ that an account of ε and δ_c = 10⁻⁶ holds, as the loss of a single query.

    An ε beyond the largest of such accounts counts as that one.
    """
    nano = min(round(epsilon * NANO), MOST_EPSILON_NANO)
    return PrivacyLoss(0, 0, rho_limit(nano, COMPOSITION_DELTA), 1)
