"""The refusals of accounting, as facts. A table in ``app`` gives each its HTTP status."""

from accounting.privacy_loss import PrivacyLoss


class AccountingError(Exception):
    """The base of every refusal by the rules of accounting."""


class BudgetExhausted(AccountingError):
    """The charge does not fit the analyst's account; nothing was charged."""

    def __init__(
        self, *, charge: PrivacyLoss, remaining: PrivacyLoss, largest_nano: int | None = None
    ) -> None:
        super().__init__("the charge exceeds what remains of the allowance")
        self.charge, self.remaining = charge, remaining
        #: The largest ε that fits in nano-ε; in an account that counts in ρ it may exceed the rest.
        self.largest_nano = remaining.epsilon_nano if largest_nano is None else largest_nano


class CapExhausted(AccountingError):
    """The charge does not fit the cap of the dataset; nothing was charged."""

    def __init__(self, *, charge: PrivacyLoss) -> None:
        super().__init__("the charge exceeds what remains of the dataset's cap")
        self.charge = charge


class BelowSpent(AccountingError):
    """A limit may not fall below what is already charged; nothing was changed."""

    def __init__(self, *, spent: PrivacyLoss) -> None:
        super().__init__("an allowance cannot be set below what is spent")
        self.spent = spent


class AccountFrozen(AccountingError):
    """The account takes no new charge until an operator has looked at it."""
