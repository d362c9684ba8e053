"""Accounts and their balances as clients see them."""

from typing import Annotated, Any, Literal

from pydantic import (
    AliasPath,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
)

from accounting.conversion import MOST_COMPOSITION_ATTO
from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import (
    Allowance,
    AllowanceFields,
    Charged,
    CompositionFields,
    Epsilon,
    Limit,
    Units,
)
from app.contract.models import Listing, Reply
from app.contract.times import Moment, MomentIn

#: Each point of a budget's history is the sum of the charges of one day, query kind or mechanism.
By = Literal["day", "kind", "mechanism"]

#: Example bodies of limits and allowances, for the interactive documentation.
LIMIT_EXAMPLES: dict[str, Any] = {"an allowance": {"value": {"epsilon": "2", "delta": "0"}}}
ALLOWANCE_EXAMPLES: dict[str, Any] = {
    **LIMIT_EXAMPLES,
    "for many small queries": {"value": {"epsilon": "2", "composition_delta": "0.000001"}},
    "with an end": {"value": {"epsilon": "2", "until": "2100-01-01T00:00:00Z"}},
}


COMPOSITION_EXAMPLES: dict[str, Any] = {
    "many small queries": {"value": {"composition_delta": "0.000001"}}
}


class AccountBalance(Reply):
    """The balance of an account. ``spent`` includes the charges of running queries."""

    allowance: Allowance = Field(validation_alias=AliasPath("account", "limit"))
    spent: Charged = Field(validation_alias=AliasPath("account", "charged"))
    remaining: Charged
    largest_epsilon: Epsilon = Field(description="The largest ε of a single query that still fits.")
    fits_more: dict[str, int] = Field(
        default_factory=dict,
        description="By kind of query: how many more of them fit at an ε of 0.1.",
    )
    until: Moment | None = Field(
        default=None,
        validation_alias="until_us",
        description="From then on nothing of it remains; absent if it has no end.",
    )
    is_over: bool = Field(default=False, exclude=True)

    @property
    def counts_rho(self) -> bool:
        """True if the owner gave δ_c: charges also fit while their ρ adds up within the limit."""
        return self.allowance.has_rho

    @model_serializer(mode="wrap")
    def _with_rho(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = serialize(self)
        if self.until is None:
            members.pop("until", None)
        if not self.counts_rho:
            # If charges count in ε alone, the largest ε and the numbers of further queries follow
            # from the remaining ε. So the reply leaves them out.
            del members["largest_epsilon"], members["fits_more"]
        else:
            for name in ("spent", "remaining"):
                members[name] = getattr(self, name).as_dict(with_rho=True)
        return members


class AnalystAccount(AccountBalance):
    """The account of one analyst on one dataset."""

    dataset: str
    analyst: str


class GrantedAccount(AnalystAccount):
    """An analyst's account, as its dataset's owner sees it. ``etag``: the value for If-Match."""

    etag: str


class AllowanceIn(AllowanceFields):
    """The allowance of an analyst. From ``until`` on it takes no new charge.

    Without ``until`` an allowance keeps the end that it has; null: it has no end.
    """

    until: MomentIn | None = None


class CompositionIn(CompositionFields):
    """The δ_c of a cap, and whether it allows Gaussian noise; its ε and δ never change."""

    composition_delta: Annotated[int, Units(18, 0, MOST_COMPOSITION_ATTO)]


class Exposure(Reply):
    """The privacy loss if all analysts share their answers: so far, and with all budgets spent.

    Where accounts count in ρ, ``spent`` is a sum of ε that may exceed ``at_most``: the promise of
    the cap, with its ``composition_delta`` on top of its ``delta``.
    """

    spent: Limit
    at_most: Limit


class DatasetBudgets(Listing[GrantedAccount]):
    """Every account of a dataset, their joint privacy loss, and the cap over all of them."""

    exposure: Exposure
    cap: AccountBalance


class OwnBudgets(Listing[AnalystAccount]):
    """An analyst's accounts. ``overall``: the limit over all datasets, absent if there is none.

    ``key``: the account of the key that sent the request, absent if the key has no limit.
    """

    overall: AccountBalance | None = None
    key: AccountBalance | None = None

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = serialize(self)
        absent = {name for name in ("overall", "key") if getattr(self, name) is None}
        return {name: value for name, value in members.items() if name not in absent}


class OverallBudget(AccountBalance):
    """The account of one analyst over all datasets together."""

    analyst: str


class Point(Reply):
    """The charges of one day (``YYYY-MM-DD``, UTC), of one kind of query or of one mechanism.

    They have ``rho`` where the account counts in ρ. Their ``epsilon`` is null if some of them are
    Gaussian noise, which has no finite ε.
    """

    label: str
    queries: int
    charged: Charged
    counts_rho: bool = Field(default=False, exclude=True)

    @field_serializer("charged")
    def _with_rho(self, charged: PrivacyLoss) -> dict[str, str | None]:
        return charged.as_charge(self.counts_rho)
