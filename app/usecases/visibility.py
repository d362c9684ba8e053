"""The callers that a use case admits, and the datasets and rows of lists that they may see.

A dataset that the caller may not see is NotFound, so that nobody can learn which names exist.
"""

from typing import Any

from app.config.roles import Role
from app.contract.errors import Forbidden
from app.identity.callers import Caller
from app.usecases.services import Services
from storage.catalogue.datasets import StoredDataset


def require(caller: Caller, *roles: Role) -> None:
    """Raises: Forbidden unless the caller has one of these roles.

    HTTP routes refuse earlier, before they read a body. This check also protects use cases that
    are called in another way.
    """
    if caller.roles.isdisjoint(roles):
        raise Forbidden


def visible(services: Services, caller: Caller, name: str) -> StoredDataset:
    """The dataset ``name``. Raises: NotFound if it is absent or the caller may not see it."""
    datasets = services.datasets
    return datasets.find(name, lambda row: datasets.visible_to(row, caller.user))


def owned(services: Services, caller: Caller, name: str) -> StoredDataset:
    """The caller's own dataset ``name``. Raises: NotFound if it is absent or somebody else's."""
    return services.datasets.find(name, lambda row: row.owner_id == caller.id)


def listing_scope(caller: Caller) -> dict[str, Any]:
    """The filters of a list: none for auditors, else the caller's ids as analyst and as owner.

    ``datasets``: the ids of the only datasets that the caller's key may query, if it has any.
    """
    if "auditor" in caller.roles:
        return {}
    filters = {"analyst": "analyst_id", "owner": "owner_id"}
    scope = {name: caller.id for role, name in filters.items() if role in caller.roles}
    only = caller.scope.datasets
    return scope if only is None else scope | {"datasets": only}
