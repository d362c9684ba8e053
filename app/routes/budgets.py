"""Allowances of analysts, and what is spent of them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import Body as BodyParam
from fastapi import Header, Response
from pydantic import SerializerFunctionWrapHandler, model_serializer

from accounting.account import Account
from accounting.errors import BelowSpent
from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.models import Listing, Reply
from app.contract.problems import problems
from app.http.access import CurrentUser, allow
from app.http.dependencies import ServicesDep
from app.http.route import router
from app.usecases.visibility import owned, visible
from storage.errors import NotFound, PreconditionFailed
from storage.ledger.ledger import AccountRow

api = router(prefix="/v1", tags=["budgets"])

LIMIT_EXAMPLES = {"an allowance": {"value": {"epsilon": "2", "delta": "0"}}}


class Standing(Reply):
    """An account: ``spent`` includes running queries."""

    allowance: Limit
    spent: Limit
    remaining: Limit

    @classmethod
    def of_account(cls, account: Account) -> Standing:
        return Standing(allowance=account.limit, spent=account.charged, remaining=account.remaining)


class AccountOut(Standing):
    """What one analyst may learn of one dataset."""

    dataset: str
    analyst: str

    @classmethod
    def of(cls, row: AccountRow, **more: str) -> Self:
        assert row.dataset is not None
        assert row.analyst is not None
        account = row.account
        return cls(
            dataset=row.dataset,
            analyst=row.analyst,
            allowance=account.limit,
            spent=account.charged,
            remaining=account.remaining,
            **more,
        )


class GrantedAccount(AccountOut):
    """The same for those who may change it: ``etag`` is for If-Match."""

    etag: str


class Exposure(Reply):
    """The loss when all analysts pool their answers: so far, and with what is left to them."""

    spent: Limit
    at_most: Limit


class DatasetBudgets(Listing[GrantedAccount]):
    exposure: Exposure
    cap: Standing


@api.put(
    "/datasets/{name}/budgets/{user}",
    dependencies=[allow("owner")],
    responses=problems(NotFound, BelowSpent, PreconditionFailed),
)
def set_allowance(
    name: str,
    user: str,
    limit: Annotated[Limit, BodyParam(openapi_examples=LIMIT_EXAMPLES)],
    owner: CurrentUser,
    services: ServicesDep,
    response: Response,
    if_match: Annotated[str | None, Header(max_length=256)] = None,
) -> AccountOut:
    """Set what one analyst may learn of the dataset in total; never below what is spent."""
    dataset = owned(services.datasets, name, owner)
    analyst = services.users.find(user)
    if analyst is None or "analyst" not in analyst.roles:
        raise NotFound
    row = services.ledger.grant(dataset, analyst, limit, actor=owner, if_match=if_match)
    response.headers["ETag"] = row.etag
    return AccountOut.of(row)


@api.get(
    "/datasets/{name}/budgets",
    dependencies=[allow("owner", "auditor")],
    responses=problems(NotFound),
)
def show_budgets(name: str, caller: CurrentUser, services: ServicesDep) -> DatasetBudgets:
    """Every account of the dataset, what they add up to, and the cap over all of them."""
    find = visible if "auditor" in caller.roles else owned
    dataset = find(services.datasets, name, caller)
    rows = services.ledger.accounts_of(dataset.id)
    cap = services.ledger.cap(dataset.id).account
    # Not what is granted: after a rollback the cap is charged for what analysts' accounts forgot.
    to_come = sum((row.account.remaining for row in rows), cap.charged)
    at_most = PrivacyLoss(
        min(to_come.epsilon_nano, cap.limit.epsilon_nano),
        min(to_come.delta_atto, cap.limit.delta_atto),
    )
    return DatasetBudgets(
        items=[GrantedAccount.of(row, etag=row.etag) for row in rows],
        next=None,
        exposure=Exposure(spent=cap.charged, at_most=at_most),
        cap=Standing.of_account(cap),
    )


class OwnBudgets(Listing[AccountOut]):
    """``overall``: the limit over all datasets together; absent where there is none."""

    overall: Standing | None = None

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        shown: dict[str, Any] = serialize(self)
        return shown if self.overall is not None else {"items": shown["items"], "next": None}


@api.get("/budgets", dependencies=[allow("analyst")])
def own_budgets(analyst: CurrentUser, services: ServicesDep) -> OwnBudgets:
    """The caller's accounts, one a dataset, and the limit over all of them."""
    rows = services.ledger.accounts_of_analyst(analyst.id)
    items = [AccountOut.of(row) for row in rows if row.dataset is not None]
    total = services.ledger.overall(analyst.id)
    overall = None if total is None else Standing.of_account(total.account)
    return OwnBudgets(items=items, next=None, overall=overall)
