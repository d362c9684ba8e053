"""The authenticated caller of a use case; `app.usecases.people.sessions` authenticates him."""

from dataclasses import dataclass
from typing import Literal

from storage.people.key_scopes import KeyScope
from storage.people.users import User

Door = Literal["api", "dashboard"]


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who sends a request, and the door (API or dashboard) that it came through.

    ``key_id``: the id under which the rate limit counts the request, of a key or of a person.
    """

    user: User
    key_id: str
    door: Door

    @property
    def id(self) -> int:
        return self.user.id

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def roles(self) -> frozenset[str]:
        return self.user.roles

    @property
    def scope(self) -> KeyScope:
        """What the caller's key may do."""
        return self.user.scope

    @property
    def sees_only_own(self) -> bool:
        """True if every account and query that the caller may list is their own."""
        return self.user.roles == {"analyst"}
