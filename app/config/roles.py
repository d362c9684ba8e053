"""What a person may be here."""

from typing import Literal, get_args

Role = Literal["admin", "owner", "analyst", "auditor"]
ROLES: frozenset[Role] = frozenset(get_args(Role))
