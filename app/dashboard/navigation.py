"""Where one can go: the links at the top of every page, by role."""

from __future__ import annotations

from dataclasses import dataclass

from app.http.access import ROLES, Role
from storage.people.users import User


@dataclass(frozen=True)
class Link:
    """A page in the navigation and who finds it there."""

    title: str
    path: str
    roles: frozenset[Role]


def _link(title: str, path: str, *roles: Role) -> Link:
    return Link(title, path, frozenset(roles) or ROLES)


#: In the order in which they are shown; the first of a user's links is where they start.
LINKS = (
    _link("Budgets", "/ui/budgets", "analyst"),
    _link("Ask", "/ui/ask", "analyst"),
    _link("Datasets", "/ui/datasets", "owner", "analyst", "auditor"),
    _link("Grants", "/ui/grants", "owner", "auditor"),
    _link("Queries", "/ui/queries", "analyst", "owner", "auditor"),
    _link("Ledger", "/ui/ledger", "analyst", "owner", "auditor"),
    _link("Verification", "/ui/verification", "auditor", "owner", "analyst"),
    _link("Refusals", "/ui/refusals", "auditor"),
    _link("Audit", "/ui/audit", "auditor"),
    _link("Users", "/ui/users", "admin"),
    _link("Health", "/ui/health", "admin"),
    _link("Keys", "/ui/keys"),
)


def links_for(user: User) -> list[Link]:
    return [link for link in LINKS if link.roles & user.roles]
