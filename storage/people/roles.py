"""The roles of users: admin, owner, analyst and auditor."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, delete, func, insert, literal_column, select

from storage.database.tables import identity, user_role, users

_u, _r = users.c, user_role.c
# The comma between roles is a literal in the SQL text, because a parameter would be sent at every
# execution.
_COMMA: Any = literal_column("','")
#: The roles of a row of ``users``, joined by commas.
ROLES = (
    select(func.aggregate_strings(_r.role, _COMMA))
    .where(_r.user_id == _u.id)
    .correlate(users)
    .scalar_subquery()
    .label("roles")
)
_ENABLED_ADMINS = (
    select(func.count())
    .select_from(users.join(user_role, _r.user_id == _u.id))
    .where(
        _r.role == "admin",
        _u.disabled == 0,
        # Admins who sign in with an identity provider are not counted, because their next token may
        # take that role from them. Then no admin might remain.
        _u.id.not_in(select(identity.c.user_id)),
    )
)


@lru_cache(maxsize=64)
def split_roles(joined: str | None) -> frozenset[str]:
    """The roles in a value of ``ROLES``."""
    return frozenset((joined or "").split(",")) - {""}


def insert_roles(connection: Connection, user_id: int, roles: Iterable[str]) -> None:
    """Give roles to a user who has none."""
    rows = [{"user_id": user_id, "role": role} for role in sorted(roles)]
    if rows:
        connection.execute(insert(user_role), rows)


def replace_roles(connection: Connection, user_id: int, roles: Iterable[str]) -> None:
    """Give a user these roles and no others."""
    connection.execute(delete(user_role).where(_r.user_id == user_id))
    insert_roles(connection, user_id, roles)


def has_enabled_admin(connection: Connection) -> bool:
    """True if at least one admin with keys of this service is enabled."""
    return bool(connection.execute(_ENABLED_ADMINS).scalar_one())
