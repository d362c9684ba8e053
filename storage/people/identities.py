"""People whom another service vouches for: one user a pair of issuer and subject, for ever.

The roles that a token brings count for the request it came with. Those of the latest token are
kept beside the user, for what others do with them: an owner grants budgets to analysts alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from storage.database.database import Database
from storage.database.expressions import USERS_LOCK, lock_for_transaction
from storage.database.statements import Hot
from storage.database.tables import identity, user_role, users
from storage.journal import audit
from storage.people.users import User, insert_roles, insert_user

_i, _u, _r = identity.c, users.c, user_role.c
_FIND = Hot(
    select(*_u, _i.issued_s)
    .join_from(identity, users, _u.id == _i.user_id)
    .where(_i.issuer == bindparam("issuer"), _i.subject == bindparam("subject"))
)
#: Hexadecimal digits of the digest in a name; the second only if somebody has taken the first.
DIGITS = (16, 64)


@dataclass(frozen=True, slots=True)
class Known:
    """A user from elsewhere, without roles: those are the token's. ``issued``: the latest token."""

    user: User
    issued: int


def _known(row: Any) -> Known:
    user = User(row.id, row.name, frozenset(), bool(row.disabled), row.created_us)
    return Known(user, row.issued_s)


class Identities:
    """The users of one database who come from elsewhere; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, issuer: str, subject: str) -> Known | None:
        """Who that is here, without roles; None for somebody new. Only reads."""
        rows = self._database.look_up(_FIND, issuer=issuer, subject=subject)
        return _known(rows[0]) if rows else None

    def admit(self, issuer: str, subject: str, roles: frozenset[str], issued: int) -> Known | None:
        """Make the user, or keep the roles of a token that is the latest so far.

        Args:
            issued: when the token was made, seconds; an older one changes nothing.

        Returns: the user as ``find`` does; None when both names that it could have are taken.
        """

        def work(connection: Connection) -> Known | None:
            lock_for_transaction(connection, USERS_LOCK)
            known = connection.execute(
                select(*_u, _i.issued_s)
                .join_from(identity, users, _u.id == _i.user_id)
                .where(_i.issuer == issuer, _i.subject == subject)
            ).one_or_none()
            if known is None:
                return self._made(connection, issuer, subject, roles, issued)
            if known.issued_s < issued and not known.disabled:
                self._renew(connection, known.id, known.name, roles, issued)
            return _known(known)

        return self._database.write(work)

    def _made(
        self, connection: Connection, issuer: str, subject: str, roles: Iterable[str], issued: int
    ) -> Known | None:
        taken = select(_u.id)
        free = [
            name
            for name in names(issuer, subject)
            if connection.execute(taken.where(func.lower(_u.name) == name.lower())).first() is None
        ]
        if not free:
            return None
        user_id = insert_user(connection, free[0], roles)
        values = {"user_id": user_id, "issuer": issuer, "subject": subject, "issued_s": issued}
        connection.execute(insert(identity).values(values))
        detail = {"issuer": issuer, "subject": subject, "roles": sorted(roles)}
        audit.record(connection, user_id, "user.identity", free[0], detail)
        row = connection.execute(select(users).where(_u.id == user_id)).one()
        return Known(User(row.id, row.name, frozenset(), False, row.created_us), issued)

    def _renew(
        self, connection: Connection, user_id: int, name: str, roles: frozenset[str], issued: int
    ) -> None:
        latest = update(identity).where(_i.user_id == user_id).values(issued_s=issued)
        connection.execute(latest)
        kept = select(_r.role).where(_r.user_id == user_id)
        if set(connection.execute(kept).scalars()) == roles:
            return
        connection.execute(delete(user_role).where(_r.user_id == user_id))
        insert_roles(connection, user_id, roles)
        audit.record(connection, user_id, "user.roles", name, {"roles": sorted(roles)})


def names(issuer: str, subject: str) -> list[str]:
    """Names for the user, best first: what is legible of the subject, and a digest of the pair.

    Never a claim that people choose themselves: an owner who grants to a name must not be misled.
    """
    digest = sha256(json.dumps([issuer, subject]).encode()).hexdigest()
    legible = re.sub(r"[^A-Za-z0-9]+", "-", subject)[:30].strip("-") or "user"
    return [f"{legible}.{digest[:digits]}" for digits in DIGITS]
