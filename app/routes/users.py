"""People, their roles and their keys."""

from typing import Annotated

from fastapi import Body as BodyParam
from starlette.responses import Response

from accounting.errors import BelowSpent
from app.contract.amounts import OverallLimit
from app.contract.budgets import LIMIT_EXAMPLES, OverallBudget
from app.contract.models import Listing
from app.contract.people import (
    KEY_EXAMPLES,
    KeyIn,
    KeyInfoOut,
    KeyOut,
    Me,
    NewUser,
    UserChange,
    UserIn,
    UserOut,
)
from app.contract.problems import problems
from app.http.access import CurrentCaller, allow, any_key
from app.http.dependencies import DEFAULT_LIMIT, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from app.usecases.people import keys, users
from storage.errors import AlreadyExists, Conflict, InvalidCursor, ManagedElsewhere, NotFound

api = router(prefix="/v1", tags=["users and keys"])

USERS = {"an analyst": {"value": {"name": "ana", "roles": ["analyst"]}}}
CHANGES = {"disable": {"value": {"disabled": True}}}


@api.get("/me", dependencies=[any_key])
async def who_am_i(caller: CurrentCaller) -> Me:
    """Show the name and roles of the caller."""
    return users.me(caller)


@api.post(
    "/users", status_code=201, dependencies=[allow("admin")], responses=problems(AlreadyExists)
)
def create_user(
    new: Annotated[UserIn, BodyParam(openapi_examples=USERS)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> NewUser:
    """Create a user with a first key."""
    return users.create(services, caller, new)


@api.get("/users", dependencies=[allow("admin")], responses=problems(InvalidCursor))
def list_users(
    caller: CurrentCaller,
    services: ServicesDep,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[UserOut]:
    """List all users, newest first."""
    return users.page(services, caller, limit, cursor)


@api.patch(
    "/users/{name}",
    dependencies=[allow("admin")],
    responses=problems(NotFound, Conflict, ManagedElsewhere),
)
def change_user(
    name: str,
    change: Annotated[UserChange, BodyParam(openapi_examples=CHANGES)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> UserOut:
    """Change a user's roles, disable or enable them; keys of disabled users stop working."""
    return users.change(services, caller, name, change)


@api.put(
    "/users/{name}/budget", dependencies=[allow("admin")], responses=problems(NotFound, BelowSpent)
)
def set_overall_budget(
    name: str,
    limit: Annotated[OverallLimit, BodyParam(openapi_examples=LIMIT_EXAMPLES)],
    caller: CurrentCaller,
    services: ServicesDep,
) -> OverallBudget:
    """Set an analyst's limit over all datasets; never below what is already charged."""
    return users.set_overall_budget(services, caller, name, limit)


@api.post(
    "/users/{name}/keys",
    status_code=201,
    dependencies=[any_key],
    responses=problems(NotFound, ManagedElsewhere),
)
def issue_key(
    name: str,
    caller: CurrentCaller,
    services: ServicesDep,
    body: Annotated[KeyIn, BodyParam(openapi_examples=KEY_EXAMPLES)] = keys.UNRESTRICTED,
) -> KeyOut:
    """Issue one more key of the caller or, for admins, of any user; it may have a limit."""
    return keys.issue(services, caller, name, body)


@api.get("/users/{name}/keys", dependencies=[any_key], responses=problems(NotFound))
def list_keys(name: str, caller: CurrentCaller, services: ServicesDep) -> Listing[KeyInfoOut]:
    """List the ids of a user's keys, with last use and restrictions, but never the keys."""
    return keys.page(services, caller, name)


@api.delete(
    "/keys/{id}", status_code=204, dependencies=[any_key], responses=problems(NotFound, Conflict)
)
def revoke_key(id: str, caller: CurrentCaller, services: ServicesDep) -> Response:
    """Revoke a key, which stops working immediately."""
    keys.revoke(services, caller, id)
    return Response(status_code=204)
