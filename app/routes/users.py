"""People, their roles and their keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import Body as BodyParam
from pydantic import Field, model_validator
from starlette.responses import Response

from accounting.errors import BelowSpent
from app.contract.amounts import Limit
from app.contract.models import Body, Listing, Name, Reply
from app.contract.problems import problems
from app.contract.times import moment
from app.http.access import CurrentUser, Role, allow, any_key
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.routing import router
from app.routes.budgets import LIMIT_EXAMPLES, Standing
from storage.errors import AlreadyExists, Conflict, InvalidCursor, ManagedElsewhere, NotFound
from storage.people.keys import KeyInfo
from storage.people.users import User

api = router(prefix="/v1", tags=["users and keys"])

Roles = Annotated[tuple[Role, ...], Field(min_length=1, max_length=4)]


class UserIn(Body):
    """A new user; the reply holds its first key, which is shown only there."""

    name: Name
    roles: Roles


class UserChange(Body):
    """What changes of a user; what is left out stays."""

    roles: Roles | None = None
    disabled: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.roles is None and self.disabled is None:
            raise ValueError("at least one of roles and disabled is required")
        return self


class Me(Reply):
    name: str
    roles: list[str]

    @classmethod
    def of(cls, user: User) -> Self:
        return cls(name=user.name, roles=sorted(user.roles))


class UserOut(Reply):
    name: str
    roles: list[str]
    disabled: bool
    created: datetime

    @classmethod
    def of(cls, user: User) -> Self:
        return cls(
            name=user.name,
            roles=sorted(user.roles),
            disabled=user.disabled,
            created=moment(user.created_us),
        )


class KeyOut(Reply):
    """A key, shown this once."""

    key: str
    key_id: str


class OverallBudget(Standing):
    """What one analyst may learn of all datasets together."""

    analyst: str


class NewUser(KeyOut):
    name: str
    roles: list[str]


class KeyInfoOut(Reply):
    key_id: str
    created: datetime
    last_used: datetime | None
    revoked: bool

    @classmethod
    def of(cls, key: KeyInfo) -> Self:
        used = key.last_used_us
        return cls(
            key_id=key.key_id,
            created=moment(key.created_us),
            last_used=None if used is None else moment(used),
            revoked=key.revoked,
        )


@api.get("/me", dependencies=[any_key])
async def who_am_i(user: CurrentUser) -> Me:
    """The name and roles of the key's user."""
    return Me.of(user)


@api.post(
    "/users", status_code=201, dependencies=[allow("admin")], responses=problems(AlreadyExists)
)
def create_user(
    new: Annotated[
        UserIn,
        BodyParam(
            openapi_examples={"an analyst": {"value": {"name": "ana", "roles": ["analyst"]}}}
        ),
    ],
    admin: CurrentUser,
    services: ServicesDep,
) -> NewUser:
    """Create a user with a first key."""
    user, issued = services.users.create(new.name, new.roles, actor=admin)
    return NewUser(name=user.name, roles=sorted(user.roles), key=issued.key, key_id=issued.key_id)


@api.get("/users", dependencies=[allow("admin")], responses=problems(InvalidCursor))
def list_users(
    services: ServicesDep, limit: PageLimit = DEFAULT_LIMIT, cursor: PageCursor = None
) -> Listing[UserOut]:
    """All users, newest first."""
    page = services.users.page(limit, cursor)
    return Listing(items=[UserOut.of(user) for user in page.items], next=page.next)


@api.patch(
    "/users/{name}",
    dependencies=[allow("admin")],
    responses=problems(NotFound, Conflict, ManagedElsewhere),
)
def change_user(
    name: str,
    change: Annotated[
        UserChange, BodyParam(openapi_examples={"disable": {"value": {"disabled": True}}})
    ],
    admin: CurrentUser,
    services: ServicesDep,
) -> UserOut:
    """Change roles, disable or enable; a disabled user's keys stop working at once."""
    user = services.users.update(name, roles=change.roles, disabled=change.disabled, actor=admin)
    return UserOut.of(user)


@api.put(
    "/users/{name}/budget", dependencies=[allow("admin")], responses=problems(NotFound, BelowSpent)
)
def set_overall_budget(
    name: str,
    limit: Annotated[Limit, BodyParam(openapi_examples=LIMIT_EXAMPLES)],
    admin: CurrentUser,
    services: ServicesDep,
) -> OverallBudget:
    """Set what one analyst may learn of all datasets together; never below what is spent."""
    analyst = services.users.find(name)
    if analyst is None or "analyst" not in analyst.roles:
        raise NotFound
    account = services.ledger.grant_overall(analyst, limit, actor=admin).account
    return OverallBudget(
        analyst=name, allowance=account.limit, spent=account.charged, remaining=account.remaining
    )


@api.post(
    "/users/{name}/keys",
    status_code=201,
    dependencies=[any_key],
    responses=problems(NotFound, ManagedElsewhere),
)
def issue_key(name: str, caller: CurrentUser, services: ServicesDep) -> KeyOut:
    """Issue one more key, for oneself or, as an admin, for anyone."""
    _may_manage(caller, name)
    issued = services.users.issue_key(name, actor=caller)
    return KeyOut(key=issued.key, key_id=issued.key_id)


@api.get("/users/{name}/keys", dependencies=[any_key], responses=problems(NotFound))
def list_keys(name: str, caller: CurrentUser, services: ServicesDep) -> Listing[KeyInfoOut]:
    """Ids of a user's keys, when they were made and last used; never the keys."""
    _may_manage(caller, name)
    keys = services.users.keys(name)
    return Listing(items=[KeyInfoOut.of(key) for key in keys], next=None)


@api.delete(
    "/keys/{id}", status_code=204, dependencies=[any_key], responses=problems(NotFound, Conflict)
)
def revoke_key(id: str, caller: CurrentUser, services: ServicesDep) -> Response:
    """Revoke a key; it stops working at once."""
    name = services.users.owner_of_key(id)
    if name is None:
        raise NotFound
    _may_manage(caller, name)
    services.users.revoke(id, actor=caller)
    return Response(status_code=204)


def _may_manage(caller: User, name: str) -> None:
    if "admin" not in caller.roles and caller.name != name:
        raise NotFound
