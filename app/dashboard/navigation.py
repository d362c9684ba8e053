"""The links at the top of every page, with the roles that may open each of them."""

from dataclasses import dataclass

from app.http.access import ROLES, Access, Caller, Role


@dataclass(frozen=True)
class Link:
    """A link to a page, and the roles that may open it."""

    title: str
    path: str
    access: Access


#: The page behind the bell in the navigation bar, which shows the number of notices.
NOTICES = "/ui/notices"


def _link(title: str, path: str, *roles: Role) -> Link:
    return Link(title, path, Access(frozenset(roles) or ROLES))


#: The links of the navigation bar, in display order. After the sign-in, users come to the first of
#: these pages that they may open.
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
    _link("Notices", NOTICES),
    _link("Help", "/ui/help"),
)


#: Pages that the navigation bar does not list. Other pages link to them for users who may open
#: them.
INNER = (_link("Register a dataset", "/ui/register", "owner"),)


def links_for(caller: Caller) -> list[Link]:
    """The links at the top of the caller's pages."""
    return [link for link in LINKS if link.access.admits(caller)]


def paths_for(caller: Caller) -> frozenset[str]:
    """The paths to which pages may link for this caller."""
    return frozenset(link.path for link in (*LINKS, *INNER) if link.access.admits(caller))
