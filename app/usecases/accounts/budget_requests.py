"""Requests for budget: an analyst states a purpose, and the owner of the dataset decides.

Danger: an analyst may name only datasets that they see, or a refusal would tell which names exist.
An owner lets an analyst request by an allowance of 0, which shows the dataset and buys nothing.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from accounting.account import Limit, counts_rho
from accounting.privacy_loss import PrivacyLoss
from app.contract.budget_requests import BudgetRequestIn, BudgetRequestOut, DecisionIn
from app.contract.budgets import DatasetBudgets, GrantedAccount
from app.contract.errors import InvalidRequest, RateLimited, RestrictedKey
from app.contract.ids import uuid7
from app.contract.models import Listing
from app.contract.times import microseconds
from app.identity.callers import Caller
from app.usecases.accounts import budgets, purchases
from app.usecases.services import Services
from app.usecases.visibility import owned, require, visible
from storage.catalogue.datasets import StoredDataset
from storage.errors import NotFound
from storage.ledger.accounts import AccountRow
from storage.ledger.budget_requests import BudgetRequest, Decision
from storage.ledger.limits import End

#: The most requests of one analyst within 24 hours, on all datasets together.
MOST_A_DAY = 100
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Outlook:
    """What the owner reads before a decision.

    ``account``: the analyst's account so far, None without one. ``at_most``: the loss if all
    analysts pool their answers, after the grant. ``purchases``: what the grant buys.
    """

    request: BudgetRequestOut
    budgets: DatasetBudgets
    account: GrantedAccount | None
    at_most: PrivacyLoss
    purchases: list[purchases.Purchase]


@dataclass(frozen=True)
class Rights:
    """Whether a caller may request budget on a dataset, and decide about such requests."""

    may_request: bool
    may_decide: bool


def make(services: Services, caller: Caller, name: str, body: BudgetRequestIn) -> BudgetRequestOut:
    """Request an allowance on a dataset that the caller may see.

    Raises: NotFound; RequestOpen; InvalidRequest for a moment that has passed; RestrictedKey;
        RateLimited after ``MOST_A_DAY`` requests.
    """
    require(caller, "analyst")
    _require_own_hand(caller)
    stored = visible(services, caller, name)
    until_us = None if body.until is None else microseconds(body.until)
    if until_us is not None:
        budgets.require_ahead(services, until_us)
    # Requests are never deleted, also withdrawn ones, and every verification reads them. So an
    # analyst's requests within 24 hours are limited.
    yesterday = services.database.now_us() - DAY_US
    if services.budget_requests.made_since(caller.id, yesterday, MOST_A_DAY) == MOST_A_DAY:
        raise RateLimited(retry_after=3600)
    request = services.budget_requests.make(
        uuid7(), stored.id, caller.id, body.loss, until_us, body.purpose
    )
    return _out(request)


def page(
    services: Services, caller: Caller, name: str, limit: int, cursor: str | None
) -> Listing[BudgetRequestOut]:
    """The requests on a dataset, newest first: all for its owner, their own for an analyst.

    Raises: NotFound, InvalidCursor; RestrictedKey for such a key of an analyst.
    """
    require(caller, "owner", "analyst")
    stored = visible(services, caller, name)
    if not is_owner(stored, caller):
        _require_own_hand(caller)
        if "analyst" not in caller.roles:
            raise NotFound
    analyst_id = None if is_owner(stored, caller) else caller.id
    rows = services.budget_requests.page(limit, cursor, dataset_id=stored.id, analyst_id=analyst_id)
    return Listing(items=list(map(_out, rows.items)), next=rows.next)


def rights(services: Services, caller: Caller, name: str) -> Rights:
    """What the caller may do about requests on this dataset. Raises: NotFound."""
    require(caller, "owner", "analyst")
    decides = is_owner(visible(services, caller, name), caller)
    may_request = "analyst" in caller.roles and not caller.scope.is_restricted and not decides
    return Rights(may_request, decides)


def outlook(services: Services, caller: Caller, name: str, id: str) -> Outlook:
    """One request on the caller's own dataset, and what a grant would mean. Raises: NotFound."""
    require(caller, "owner")
    request = _find(services, owned(services, caller, name), id)
    whole = budgets.of_dataset(services, caller, name)
    account = next((one for one in whole.items if one.analyst == request.analyst), None)
    try:
        offers = purchases.preview(services, caller, name, request.loss)
    except InvalidRequest:
        # The owner has not uploaded the graph's node list yet, so no query has a price.
        offers = []
    at_most = _pooled(whole, request)
    return Outlook(_out(request), whole, account, at_most, offers)


def decide(
    services: Services, caller: Caller, name: str, id: str, body: DecisionIn
) -> BudgetRequestOut:
    """Grant or refuse a request on the caller's own dataset.

    A grant sets the allowance in the transaction that stores the decision. Raises: NotFound,
    RequestDecided, BelowSpent, InvalidRequest.
    """
    require(caller, "owner")
    stored = owned(services, caller, name)
    request = _find(services, stored, id)
    if body.decision == "refuse":
        services.budget_requests.refuse(request.id, caller.id, Decision(body.reason))
        return _out(services.budget_requests.find(request.id))
    loss = PrivacyLoss(
        request.loss.epsilon_nano if body.epsilon is None else body.epsilon,
        request.loss.delta_atto if body.delta is None else body.delta,
    )
    # The end of an allowance is the moment from which it admits no charge. If the request names no
    # end, the allowance keeps the one that it has.
    end = None if request.until_us is None else End(request.until_us)
    if "until" in body.model_fields_set:
        end = End(None if body.until is None else microseconds(body.until))

    def store(connection: Any, account: AccountRow) -> None:
        if account.is_over:
            raise budgets.is_past()
        decision = Decision(body.reason, loss, account.until_us)
        services.budget_requests.decide(connection, request.id, caller.id, decision)

    limit = partial(_limit, loss)
    budgets.set_allowance(services, caller, name, request.analyst, limit, end, then=store)
    return _out(services.budget_requests.find(request.id))


def erase(services: Services, caller: Caller, name: str, id: str) -> None:
    """Erase the texts of a request; an open one is withdrawn. Raises: NotFound.

    The analyst who made it and the owner of the dataset may do so. Raises: RestrictedKey for
    such a key of an analyst.
    """
    require(caller, "owner", "analyst")
    stored = visible(services, caller, name)
    if not is_owner(stored, caller):
        _require_own_hand(caller)
    request = _find(services, stored, id)
    is_own = request.analyst_id == caller.id and "analyst" in caller.roles
    if not (is_own or is_owner(stored, caller)):
        raise NotFound
    services.budget_requests.erase(request.id, caller.id)


def is_owner(stored: StoredDataset, caller: Caller) -> bool:
    """True if the caller owns the dataset and still has the role of owner."""
    return stored.owner_id == caller.id and "owner" in caller.roles


def _require_own_hand(caller: Caller) -> None:
    """Raises: RestrictedKey for such a key, which is handed to programs that are trusted less.

    A purpose is a text of its user to the owner of a dataset.
    """
    if caller.scope.is_restricted:
        raise RestrictedKey


def _find(services: Services, stored: StoredDataset, id: str) -> BudgetRequest:
    try:
        request = services.budget_requests.find(UUID(id))
    except ValueError:
        raise NotFound from None
    if request.dataset_id != stored.id:
        raise NotFound
    return request


def _limit(loss: PrivacyLoss, old: Limit | None) -> Limit:
    """The limit in ε and δ, with the δ_c that the account has already. Raises: InvalidRequest."""
    if old is None or not old.has_rho:
        return Limit.of(loss)
    if not counts_rho(loss.epsilon_nano):
        raise InvalidRequest.at(
            "body", "epsilon", type="rho", msg="an account that counts in rho has at most 1000"
        )
    limit = Limit.of(loss, old.composition_atto)
    # Gaussian noise is charged in ρ. If ε is so small that the account gets no limit in ρ, the
    # permission of such noise is of no use, so it is dropped.
    return Limit.of(loss, old.composition_atto, old.gaussian and limit.rho_femto > 0)


def _pooled(whole: DatasetBudgets, request: BudgetRequest) -> PrivacyLoss:
    """The loss if all analysts pool their answers, once the request is granted as it is."""
    cap = whole.cap
    if cap.counts_rho or any(one.counts_rho for one in whole.items):
        # An account that counts in ρ may be charged more ε than its limit, so sums of ε bound
        # nothing. Then only the cap of the dataset bounds the loss, and no grant changes the cap.
        return whole.exposure.at_most
    others = [one for one in whole.items if one.analyst != request.analyst]
    spent = [one.spent for one in whole.items if one.analyst == request.analyst]
    taken = sum(spent, PrivacyLoss(0))
    pooled = sum((one.remaining for one in others), cap.spent)
    epsilon = max(0, request.loss.epsilon_nano - taken.epsilon_nano)
    delta = max(0, request.loss.delta_atto - taken.delta_atto)
    return PrivacyLoss(
        min(pooled.epsilon_nano + epsilon, cap.allowance.epsilon_nano),
        min(pooled.delta_atto + delta, cap.allowance.delta_atto),
    )


def _out(request: BudgetRequest) -> BudgetRequestOut:
    return BudgetRequestOut(
        id=str(request.id),
        dataset=request.dataset,
        analyst=request.analyst,
        **request.loss.as_dict(),
        until=request.until_us,
        purpose=request.purpose,
        created=request.created_us,
        status=request.state.name.lower(),
        decided=request.decided_us,
        granted=request.granted,
        granted_until=request.granted_until_us,
        reason=request.reason,
    )
