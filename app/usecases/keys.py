"""Keys of users. Users manage their own keys, and admins manage the keys of all users."""

from app.contract.models import Listing
from app.contract.people import KeyInfoOut, KeyOut
from app.identity.callers import Caller
from app.usecases.services import Services
from storage.errors import NotFound


def issue(services: Services, caller: Caller, name: str) -> KeyOut:
    """Issue one more key of a user. Raises: NotFound, ManagedElsewhere."""
    _require_manager(caller, name)
    return KeyOut.model_validate(services.users.issue_key(name, actor=caller.user))


def page(services: Services, caller: Caller, name: str) -> Listing[KeyInfoOut]:
    """The ids of a user's keys; never the keys. Raises: NotFound."""
    _require_manager(caller, name)
    keys = [KeyInfoOut.model_validate(key) for key in services.users.keys(name)]
    return Listing(items=keys, next=None)


def revoke(services: Services, caller: Caller, key_id: str, owner: str | None = None) -> None:
    """Revoke a key. Raises: NotFound, also if ``owner`` is given and the key is not theirs."""
    name = services.users.owner_of_key(key_id)
    if name is None or owner not in (None, name):
        raise NotFound
    _require_manager(caller, name)
    services.users.revoke(key_id, actor=caller.user)


def _require_manager(caller: Caller, name: str) -> None:
    if "admin" not in caller.roles and caller.name != name:
        raise NotFound
