"""Allowances of analysts, and the charges against them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from accounting.account import Limit, counts_rho
from accounting.privacy_loss import PrivacyLoss
from app.contract.budgets import (
    AccountBalance,
    AllowanceIn,
    AnalystAccount,
    CompositionIn,
    DatasetBudgets,
    Exposure,
    GrantedAccount,
    OwnBudgets,
    Point,
)
from app.contract.errors import InvalidRequest
from app.contract.models import Listing
from app.contract.times import microseconds
from app.identity.callers import Caller
from app.usecases.accounts.fits import Charges, charges_by_kind, more_by_kind
from app.usecases.charge_sums import Grain
from app.usecases.services import Services
from app.usecases.visibility import owned, require, visible
from storage.catalogue.dataset_rows import StoredDataset
from storage.errors import NotFound
from storage.ledger.accounts import AccountRow
from storage.ledger.limits import End, NewLimit

Balance = TypeVar("Balance", bound=AccountBalance)
#: Returns the charge of each query kind on one dataset. The argument is True for an allowance that
#: counts in ρ.
ChargesBy = Callable[[bool], Charges]


@dataclass(frozen=True)
class Reconciliation:
    """The sum of all analysts' charges on one dataset, beside the charges of the dataset's cap.

    People who check by hand compare the two sums; verification recomputes the hash chains instead.
    A query that is charged between the two reads may be in one sum and not in the other.
    """

    dataset: str
    analysts: int
    charged: PrivacyLoss
    cap_charged: PrivacyLoss
    cap: Limit

    @property
    def agrees(self) -> bool:
        # Only ε and δ are compared. Accounts begin to count ρ at different moments, so their sums
        # of ρ may differ.
        return self.charged.amounts[:2] == self.cap_charged.amounts[:2]


@dataclass(frozen=True)
class Granted:
    """A dataset with its cap, for the one who grants allowances for it."""

    name: str
    cap: AccountBalance


def grant(
    services: Services,
    caller: Caller,
    dataset: str,
    analyst: str,
    wish: AllowanceIn,
    if_match: str | None = None,
) -> GrantedAccount:
    """Set the allowance of ``analyst`` on the caller's dataset.

    ``if_match``: the etag that the account must have. Raises: NotFound, BelowSpent,
    PreconditionFailed; InvalidRequest for an end that has passed.
    """
    require(caller, "owner")
    end = None
    if "until" in wish.model_fields_set:
        end = End(None if wish.until is None else microseconds(wish.until))
    return set_allowance(services, caller, dataset, analyst, wish.value(), end, if_match)


def set_allowance(
    services: Services,
    caller: Caller,
    dataset: str,
    analyst: str,
    limit: Limit | NewLimit,
    end: End | None,
    if_match: str | None = None,
    then: Callable[[Any, AccountRow], None] = lambda _connection, _account: None,
) -> GrantedAccount:
    """As ``grant``; without ``end`` the account keeps the end that it has.

    ``then`` gets the account in the same transaction.
    """
    require(caller, "owner")
    if end is not None and end.until_us is not None:
        require_ahead(services, end.until_us)
    stored = owned(services, caller, dataset)
    user = services.users.find(analyst)
    if user is None or "analyst" not in user.roles:
        raise NotFound
    account = services.ledger.grant(
        *(stored.id, user.id, limit),
        actor_id=caller.id,
        if_match=if_match,
        end=end,
        then=then,
    )
    return _balance(GrantedAccount, account, partial(charges_by_kind, stored))


def require_ahead(services: Services, until_us: int) -> None:
    """Raises: InvalidRequest for an end, in microseconds, that has passed."""
    if until_us <= services.database.now_us():
        raise is_past()


def is_past() -> InvalidRequest:
    """The refusal of an end that has passed."""
    return InvalidRequest.at("body", "until", type="past", msg="it is over already")


def promise_cap(
    services: Services, caller: Caller, dataset: str, change: CompositionIn
) -> AccountBalance:
    """Set the δ_c of the cap of the caller's dataset, and whether it allows Gaussian noise.

    Its ε and δ never change. Raises: NotFound, BelowSpent; InvalidRequest for a cap above ε = 1000
    and for Gaussian noise where δ_c is too small for a limit in ρ.
    """
    require(caller, "owner")
    stored = owned(services, caller, dataset)
    loss = stored.cap.loss
    if change.composition_delta and not counts_rho(loss.epsilon_nano):
        raise InvalidRequest.at(
            "composition_delta", type="cap", msg="it needs a cap with an epsilon of at most 1000"
        )
    limit = Limit.of(loss, change.composition_delta)
    if change.gaussian and not limit.rho_femto:
        raise InvalidRequest.at(
            "gaussian", type="cap", msg="it needs a composition_delta that leaves a limit in rho"
        )
    limit = replace(limit, gaussian=change.gaussian)
    account = services.ledger.limit_cap(stored.id, limit, actor_id=caller.id)
    rows = services.ledger.accounts(dataset_id=stored.id)
    return _cap_balance(account, rows, partial(charges_by_kind, stored))


def of_dataset(services: Services, caller: Caller, name: str) -> DatasetBudgets:
    """Every account of a dataset. Its owner and auditors may read them. Raises: NotFound."""
    dataset = _read_by_owner(services, caller, name)
    rows = services.ledger.accounts(dataset_id=dataset.id)
    row_of_cap = services.ledger.cap(dataset.id)
    charges = partial(charges_by_kind, dataset)
    cap = _cap_balance(row_of_cap, rows, charges)
    # δ_c is the δ that counting in ρ adds to all answers together. The owner may have lowered the
    # δ_c of the cap (the limit on all analysts together), so the largest that the cap ever had
    # counts.
    composition = services.ledger.largest_composition(row_of_cap)
    # The sum over all analysts starts from the charges of the cap, their common limit. After a
    # rollback of the database, the cap also holds the charges of answers that the restored accounts
    # of analysts do not hold.
    pooled = sum((row.remaining for row in rows), cap.spent)
    promise = PrivacyLoss(cap.allowance.epsilon_nano, cap.allowance.delta_atto + composition)
    # An account that counts in ρ may be charged more ε than its limit, so sums of ε bound nothing.
    # Then only the cap (``promise``), the limit on all analysts together, bounds the loss.
    sums_bound = not (composition or any(row.account.limit.composition_atto for row in rows))
    at_most = promise
    if sums_bound:
        at_most = PrivacyLoss(
            min(pooled.epsilon_nano, promise.epsilon_nano),
            min(pooled.delta_atto, promise.delta_atto),
        )
    return DatasetBudgets(
        items=[_balance(GrantedAccount, row, charges) for row in rows],
        next=None,
        exposure=Exposure(spent=cap.spent, at_most=at_most),
        cap=cap,
    )


def caps(services: Services, caller: Caller) -> list[Granted]:
    """The caps of the caller's own datasets; for an auditor, those of all. Sorted by name."""
    require(caller, "owner", "auditor")
    owner_id = None if "auditor" in caller.roles else caller.id
    return [
        Granted(row.dataset or "", AccountBalance.model_validate(row))
        for row in services.ledger.caps(owner_id)
    ]


def may_grant(services: Services, caller: Caller, dataset: str) -> bool:
    """Whether the caller owns the dataset, and so sets allowances for it."""
    try:
        owned(services, caller, dataset)
    except NotFound:
        return False
    return "owner" in caller.roles


def analysts(services: Services, caller: Caller, names: Collection[str]) -> dict[str, int]:
    """How many analysts have an allowance on each of these datasets, all in one statement."""
    require(caller, "owner", "auditor")
    return services.ledger.analyst_counts(names)


def reconcile(services: Services, caller: Caller) -> list[Reconciliation]:
    """The sums of every dataset whose budgets the caller may read; no sums for other callers."""
    if not caller.roles & {"auditor", "owner"}:
        return []
    granted = caps(services, caller)
    totals = services.ledger.totals([one.name for one in granted])
    return [
        Reconciliation(
            dataset=one.name,
            analysts=totals[one.name].accounts,
            charged=totals[one.name].charged,
            cap_charged=one.cap.spent,
            cap=one.cap.allowance,
        )
        for one in granted
    ]


def own(services: Services, caller: Caller) -> OwnBudgets:
    """The caller's accounts, one per dataset, and the limit over all datasets together."""
    require(caller, "analyst")
    total = services.ledger.account(None, caller.id)
    key_id = caller.scope.limited_key
    keyed = None if key_id is None else services.ledger.accounts_of_keys(caller.id).get(key_id)
    return OwnBudgets(
        items=[_own_balance(services, row) for row in _own_rows(services, caller)],
        next=None,
        overall=None if total is None else AccountBalance.model_validate(total),
        key=None if keyed is None else AccountBalance.model_validate(keyed),
    )


def _own_rows(services: Services, caller: Caller) -> list[AccountRow]:
    """The caller's accounts on the datasets that the caller's key may query."""
    return services.ledger.accounts(analyst_id=caller.id, datasets=caller.scope.datasets)


def _own_row(services: Services, caller: Caller, dataset: str) -> AccountRow:
    """The caller's account for one dataset. Raises: NotFound."""
    require(caller, "analyst")
    row = next((row for row in _own_rows(services, caller) if row.dataset == dataset), None)
    if row is None:
        raise NotFound
    return row


def _own_balance(services: Services, row: AccountRow) -> AnalystAccount:
    def charges(in_rho: bool) -> Charges:
        return charges_by_kind(services.datasets.find(row.dataset or ""), in_rho)

    return _balance(AnalystAccount, row, charges)


def _cap_balance(cap: AccountRow, rows: Sequence[AccountRow], charges: ChargesBy) -> AccountBalance:
    """The cap of a dataset as clients see it; ``rows`` are the allowances on this dataset."""
    defaults = {row.account.limit.has_rho for row in rows} or {True, False}
    return _balance(AccountBalance, cap, charges, defaults)


def _balance(
    kind: type[Balance],
    row: AccountRow,
    charges: ChargesBy,
    defaults: Collection[bool] = (True,),
) -> Balance:
    """An account as clients see it; if it counts in ρ, with what still fits by kind of query.

    ``defaults``: whether those who are charged to it have allowances that count in ρ.
    """
    balance = kind.model_validate(row)
    if not balance.counts_rho or row.is_over:
        return balance
    fits = more_by_kind(row.account, [charges(in_rho) for in_rho in defaults])
    return balance.model_copy(update={"fits_more": fits})


def _read_by_owner(services: Services, caller: Caller, name: str) -> StoredDataset:
    """A dataset of the caller, or any for an auditor. Raises: NotFound."""
    require(caller, "owner", "auditor")
    find = visible if "auditor" in caller.roles else owned
    return find(services, caller, name)


def own_account(services: Services, caller: Caller, dataset: str) -> AnalystAccount:
    """The caller's account for one dataset. Raises: NotFound."""
    return _own_balance(services, _own_row(services, caller, dataset))


def history_of_cap(
    services: Services, caller: Caller, dataset: str
) -> tuple[AccountBalance, Callable[[Grain], list[Point]]]:
    """The cap of a dataset, and a function that reads all charges against it.

    For the dataset's owner and auditors. Raises: NotFound; the function raises Busy, RateLimited.
    """
    stored = _read_by_owner(services, caller, dataset)
    row = services.ledger.cap(stored.id)

    def read(by: Grain) -> list[Point]:
        with services.reads.slot(caller.id):
            return services.charge_sums.points(row, by)

    return AccountBalance.model_validate(row), read


def history(services: Services, caller: Caller, dataset: str, by: Grain) -> Listing[Point]:
    """The caller's charges on one dataset by hour or day (latest first), kind or mechanism.

    Charges of cancelled queries are left out, because they were given back.
    Raises: NotFound; Busy while much of the history is read for the first time; RateLimited.
    """
    return Listing(items=histories(services, caller, [dataset], by)[dataset], next=None)


def histories(
    services: Services, caller: Caller, datasets: Collection[str], by: Grain
) -> dict[str, list[Point]]:
    """``history`` of several datasets, by their names. Raises: as ``history``."""
    require(caller, "analyst")
    rows = {row.dataset: row for row in _own_rows(services, caller)}
    if not rows.keys() >= set(datasets):
        raise NotFound
    with services.reads.slot(caller.id):
        return {name: services.charge_sums.points(rows[name], by) for name in datasets}
