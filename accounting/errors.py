"""The refusals of accounting, as facts. A table in ``app`` gives each its HTTP status."""

from accounting.privacy_loss import PrivacyLoss, format_units


class AccountingError(Exception):
    """The base of every refusal by the rules of accounting."""


class BudgetExhausted(AccountingError):
    """The charge does not fit the analyst's account; nothing was charged.

    ``has_rho``: whether the account also counts in ρ.
    """

    def __init__(
        self,
        *,
        charge: PrivacyLoss,
        remaining: PrivacyLoss,
        largest_nano: int | None = None,
        has_rho: bool = False,
    ) -> None:
        super().__init__("the charge exceeds what remains of the allowance")
        self.charge, self.remaining, self.has_rho = charge, remaining, has_rho
        #: The largest ε that fits in nano-ε; in an account that counts in ρ it may exceed the rest.
        self.largest_nano = remaining.epsilon_nano if largest_nano is None else largest_nano


class CapExhausted(AccountingError):
    """The charge does not fit the cap of the dataset; nothing was charged.

    ``has_rho``: whether the cap also counts in ρ.
    """

    def __init__(self, *, charge: PrivacyLoss, has_rho: bool = False) -> None:
        super().__init__("the charge exceeds what remains of the dataset's cap")
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
