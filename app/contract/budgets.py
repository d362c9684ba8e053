"""Accounts and their balances as clients see them."""

from typing import Any, Literal

from pydantic import AliasPath, Field, SerializerFunctionWrapHandler, model_serializer

from app.contract.amounts import Limit
from app.contract.models import Listing, Reply

#: The charges that one point of a budget's history sums up: of a day, a kind or a mechanism.
By = Literal["day", "kind", "mechanism"]

#: An example of a limit, for the interactive documentation.
LIMIT_EXAMPLES: dict[str, Any] = {"an allowance": {"value": {"epsilon": "2", "delta": "0"}}}


class AccountBalance(Reply):
    """The balance of an account. ``spent`` includes the charges of running queries."""

    allowance: Limit = Field(validation_alias=AliasPath("account", "limit"))
    spent: Limit = Field(validation_alias=AliasPath("account", "charged"))
    remaining: Limit = Field(validation_alias=AliasPath("account", "remaining"))


class AnalystAccount(AccountBalance):
    """The account of one analyst on one dataset."""

    dataset: str
    analyst: str


class GrantedAccount(AnalystAccount):
    """An analyst's account, as its dataset's owner sees it. ``etag``: the value for If-Match."""

    etag: str


class Exposure(Reply):
    """The privacy loss if all analysts share their answers: so far, and with all budgets spent."""

    spent: Limit
    at_most: Limit


class DatasetBudgets(Listing[GrantedAccount]):
    """Every account of a dataset, their joint privacy loss, and the cap over all of them."""

    exposure: Exposure
    cap: AccountBalance


class OwnBudgets(Listing[AnalystAccount]):
    """An analyst's accounts. ``overall``: the limit over all datasets, absent if there is none."""

    overall: AccountBalance | None = None

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = serialize(self)
        if self.overall is not None:
            return members
        return {"items": members["items"], "next": None}


class OverallBudget(AccountBalance):
    """The account of one analyst over all datasets together."""

    analyst: str


class Point(Reply):
    """The charges of one day (``YYYY-MM-DD``, UTC), of one kind of query or of one mechanism."""

    label: str
    queries: int
    charged: Limit
