"""The loss in ρ that experiments set beside a loss in ε."""

from accounting.conversion import rho_limit
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss

#: δ_c of the accounts: a promise of (ε, δ_c) for all queries together.
COMPOSITION_DELTA = ATTO // 10**6


def rho_of(epsilon: float) -> PrivacyLoss:
    """The most ρ that an account of ε and δ_c = 10⁻⁶ holds, as the loss of a single query."""
    return PrivacyLoss(0, 0, rho_limit(round(epsilon * NANO), COMPOSITION_DELTA), 1)
