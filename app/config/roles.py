"""The roles that a user can have."""

from typing import Literal, get_args

Role = Literal["admin", "owner", "analyst", "auditor"]
ROLES: frozenset[Role] = frozenset(get_args(Role))
