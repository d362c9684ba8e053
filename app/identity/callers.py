"""Who is calling, once that is settled (``app.usecases.sessions``)."""

from dataclasses import dataclass
from typing import Literal

from storage.people.users import User

Door = Literal["api", "dashboard"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A user who acts now: the id of the key or of the person that is counted, and the door."""

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
    def sees_only_own(self) -> bool:
        """True if every account and query that the caller may list is their own."""
        return self.user.roles == {"analyst"}
