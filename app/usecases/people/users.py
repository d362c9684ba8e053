"""People and their roles."""

from dataclasses import dataclass

from accounting.account import Limit
from accounting.privacy_loss import PrivacyLoss
from app.contract.budgets import AccountBalance, OverallBudget
from app.contract.models import Listing
from app.contract.people import KeyInfoOut, Me, NewUser, UserChange, UserIn, UserOut
from app.identity.callers import Caller
from app.usecases.people import keys
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.errors import NotFound


@dataclass(frozen=True)
class UserDetails:
    """A user, the limit over all datasets together if there is one, and the ids of the keys."""

    user: UserOut
    may_query: bool
    overall: AccountBalance | None
    keys: list[KeyInfoOut]


def me(caller: Caller) -> Me:
    """The caller's own name and roles."""
    return Me.model_validate(caller)


def create(services: Services, caller: Caller, new: UserIn) -> NewUser:
    """Create a user with a first key. Raises: AlreadyExists."""
    require(caller, "admin")
    user, issued = services.users.create(new.name, new.roles, actor=caller.user)
    return NewUser(name=user.name, roles=user.roles, key=issued.key, key_id=issued.key_id)


def page(
    services: Services, caller: Caller, limit: int, cursor: str | None, search: str = ""
) -> Listing[UserOut]:
    """The users whose names contain ``search``, newest first. Raises: InvalidCursor."""
    require(caller, "admin")
    return Listing[UserOut].model_validate(services.users.page(limit, cursor, search))


def describe(services: Services, caller: Caller, name: str) -> UserDetails:
    """One user. Raises: NotFound."""
    require(caller, "admin")
    user = services.users.find(name)
    if user is None:
        raise NotFound
    total = services.ledger.account(None, user.id)
    return UserDetails(
        user=UserOut.model_validate(user),
        may_query="analyst" in user.roles,
        overall=None if total is None else AccountBalance.model_validate(total),
        keys=keys.page(services, caller, name).items,
    )


def change(services: Services, caller: Caller, name: str, body: UserChange) -> UserOut:
    """Replace roles, disable or enable a user. Raises: NotFound, Conflict, ManagedElsewhere."""
    require(caller, "admin")
    user = services.users.update(name, roles=body.roles, disabled=body.disabled, actor=caller.user)
    return UserOut.model_validate(user)


def set_overall_budget(
    services: Services, caller: Caller, name: str, limit: PrivacyLoss
) -> OverallBudget:
    """Set an analyst's limit over all datasets together. Raises: NotFound, BelowSpent."""
    require(caller, "admin")
    analyst = services.users.find(name)
    if analyst is None or "analyst" not in analyst.roles:
        raise NotFound
    account = services.ledger.grant(None, analyst.id, Limit.of(limit), actor_id=caller.id)
    return OverallBudget.model_validate(account)
