"""Keys of users. Users manage their own keys, and admins manage the keys of all users.

Danger: a restricted key must issue no keys, or whoever has it could issue one without restrictions.
"""

from dataclasses import dataclass

from accounting.account import Limit
from accounting.privacy_loss import PrivacyLoss
from app.contract.budgets import AccountBalance
from app.contract.errors import InvalidRequest, RestrictedKey
from app.contract.models import Listing
from app.contract.people import KeyIn, KeyInfoOut, KeyOut
from app.contract.times import microseconds, moment
from app.identity.callers import Caller
from app.usecases.accounts import budgets
from app.usecases.services import Services
from app.usecases.visibility import visible
from storage.errors import NotFound
from storage.people.keys import Restrictions

UNRESTRICTED = KeyIn()


@dataclass(frozen=True)
class OwnKeys:
    """The caller's keys. ``datasets``: those that a new key may be restricted to.

    ``datasets`` is None for a caller whose keys have no limit, because only analysts query.
    """

    keys: list[KeyInfoOut]
    may_issue: bool
    datasets: list[str] | None


def issue(services: Services, caller: Caller, name: str, body: KeyIn = UNRESTRICTED) -> KeyOut:
    """Issue one more key of a user, restricted as in ``body``.

    Raises: NotFound, also for a dataset that the caller may not see; RestrictedKey;
    InvalidRequest; ManagedElsewhere.
    """
    _require_manager(caller, name)
    if caller.scope.is_restricted:
        raise RestrictedKey
    restrictions = _restrictions(services, caller, name, body)
    opening = None
    if body.epsilon is not None:
        limit = Limit.of(PrivacyLoss(body.epsilon, body.delta or 0))
        opening = services.ledger.key_account(limit, actor_id=caller.id)
    issued = services.users.issue_key(
        name, actor=caller.user, restrictions=restrictions, open_account=opening
    )
    return KeyOut.model_validate(issued)


def overview(services: Services, caller: Caller) -> OwnKeys:
    """The caller's own keys, and what a new one may be restricted to."""
    may_issue = not caller.scope.is_restricted
    datasets = None
    if "analyst" in caller.roles:
        datasets = [one.dataset for one in budgets.own(services, caller).items]
    return OwnKeys(page(services, caller, caller.name).items, may_issue, datasets)


def page(services: Services, caller: Caller, name: str) -> Listing[KeyInfoOut]:
    """The ids of a user's keys; never the keys. A restricted key sees itself alone.

    Raises: NotFound.
    """
    _require_manager(caller, name)
    user = services.users.find(name)
    if user is None:
        raise NotFound
    keys = services.users.keys(name)
    if caller.scope.is_restricted:
        keys = [key for key in keys if key.key_id == caller.key_id]
    names = services.datasets.names({id for key in keys for id in key.scope.datasets or ()})
    accounts = services.ledger.accounts_of_keys(user.id)
    items = []
    for key in keys:
        scope, account = key.scope, accounts.get(key.key_id)
        restrictions = {
            "until": None if scope.until_us is None else moment(scope.until_us),
            "datasets": None
            if scope.datasets is None
            else sorted(names[id] for id in scope.datasets),
            "budget": None if account is None else AccountBalance.model_validate(account),
        }
        items.append(KeyInfoOut.model_validate(key).model_copy(update=restrictions))
    return Listing(items=items, next=None)


def revoke(services: Services, caller: Caller, key_id: str, owner: str | None = None) -> None:
    """Revoke a key. Raises: NotFound, also if ``owner`` is given and the key is not theirs.

    A restricted key may revoke itself alone. Raises: RestrictedKey.
    """
    name = services.users.owner_of_key(key_id)
    if name is None or owner not in (None, name):
        raise NotFound
    _require_manager(caller, name)
    if caller.scope.is_restricted and caller.key_id != key_id:
        raise RestrictedKey
    services.users.revoke(key_id, actor=caller.user)


def _restrictions(services: Services, caller: Caller, name: str, body: KeyIn) -> Restrictions:
    until_us, datasets = None, None
    if body.until is not None:
        until_us = microseconds(body.until)
        budgets.require_ahead(services, until_us)
    if body.datasets is not None:
        datasets = frozenset(visible(services, caller, one).id for one in body.datasets)
    if body.epsilon is not None or datasets is not None:
        user = services.users.find(name)
        if user is None:
            raise NotFound
        if "analyst" not in user.roles:
            raise InvalidRequest.at(
                "body", type="analyst", msg="only keys of analysts have a limit or datasets"
            )
    return Restrictions(body.epsilon is not None, datasets, until_us)


def _require_manager(caller: Caller, name: str) -> None:
    if "admin" not in caller.roles and caller.name != name:
        raise NotFound
