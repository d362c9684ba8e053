"""Accounts and their balances as clients see them."""

from typing import Any, Literal

from pydantic import AliasPath, Field, SerializerFunctionWrapHandler, model_serializer

from app.contract.amounts import Limit
from app.contract.models import Listing, Reply

#: What one point of the history of a budget stands for.
By = Literal["day", "kind", "mechanism"]

#: A limit, for the interactive documentation.
LIMIT_EXAMPLES: dict[str, Any] = {"an allowance": {"value": {"epsilon": "2", "delta": "0"}}}


class AccountBalance(Reply):
    """An account: ``spent`` includes running queries."""

    allowance: Limit = Field(validation_alias=AliasPath("account", "limit"))
    spent: Limit = Field(validation_alias=AliasPath("account", "charged"))
    remaining: Limit = Field(validation_alias=AliasPath("account", "remaining"))


class AnalystAccount(AccountBalance):
    """What one analyst may learn of one dataset."""

    dataset: str
    analyst: str


class GrantedAccount(AnalystAccount):
    """The same for those who may change it: ``etag`` is for If-Match."""

    etag: str


class Exposure(Reply):
    """The loss when all analysts pool their answers: so far, and with what is left to them."""

    spent: Limit
    at_most: Limit


class DatasetBudgets(Listing[GrantedAccount]):
    """Every account of a dataset, what they add up to, and the cap over all of them."""

    exposure: Exposure
    cap: AccountBalance


class OwnBudgets(Listing[AnalystAccount]):
    """``overall``: the limit over all datasets together; absent where there is none."""

    overall: AccountBalance | None = None

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = serialize(self)
        if self.overall is not None:
            return members
        return {"items": members["items"], "next": None}


class OverallBudget(AccountBalance):
    """What one analyst may learn of all datasets together."""

    analyst: str


class Point(Reply):
    """What was charged on one day (``YYYY-MM-DD``, UTC), for one kind of query or mechanism."""

    label: str
    queries: int
    charged: Limit
