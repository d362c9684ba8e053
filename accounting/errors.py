"""The refusals of accounting, as facts. A table in ``app`` gives each its HTTP status."""

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss, format_units


class AccountingError(Exception):
    """The base of every refusal by the rules of accounting."""


class BudgetExhausted(AccountingError):
    """The charge does not fit an account of the analyst or of a key; nothing was charged.

    ``rank``: the account that refuses. ``has_rho``: whether it also counts in ρ. ``reason``: which
    account refuses and why, in words. ``largest``: the largest charge that the account admits; its
    ε may exceed the remaining ε where the account counts in ρ.
    """

    def __init__(
        self,
        *,
        charge: PrivacyLoss,
        remaining: PrivacyLoss,
        largest: PrivacyLoss | None = None,
        rank: AccountRank = AccountRank.ANALYST_ON_DATASET,
        has_rho: bool = False,
        reason: str = "the charge exceeds what remains of the allowance",
    ) -> None:
        super().__init__(reason)
        self.charge, self.remaining, self.has_rho = charge, remaining, has_rho
        self.largest = remaining if largest is None else largest
        self.rank = rank


class AllowanceEnded(BudgetExhausted):
    """The allowance was granted until a moment that has passed; nothing was charged."""

    def __init__(self, *, charge: PrivacyLoss) -> None:
        super().__init__(charge=charge, remaining=PrivacyLoss(0))
        self.args = ("the allowance has ended, so nothing of it remains",)


class CapExhausted(AccountingError):
    """The charge does not fit the cap of the dataset; nothing was charged.

    ``has_rho``: whether the cap also counts in ρ. ``reason``: why the cap refuses, in words.
    """

    def __init__(
        self,
        *,
        charge: PrivacyLoss,
        has_rho: bool = False,
        reason: str = "the charge exceeds what remains of the dataset's cap",
    ) -> None:
        super().__init__(reason)
        self.charge, self.has_rho = charge, has_rho


class BelowSpent(AccountingError):
    """A limit may not fall below what is already charged; nothing was changed.

    ``lost_atto``: the δ_c of the account, if the new limit has less; else 0.
    """

    def __init__(self, *, spent: PrivacyLoss, has_rho: bool = False, lost_atto: int = 0) -> None:
        text = "an allowance cannot be set below what is spent"
        if lost_atto:
            text += (
                f"; the new limit leaves out the composition_delta {format_units(lost_atto, 18)} "
                "of the account, or lowers it"
            )
        super().__init__(text)
        self.spent, self.has_rho, self.lost_atto = spent, has_rho, lost_atto


class AccountFrozen(AccountingError):
    """The account takes no new charge until an operator has looked at it."""
