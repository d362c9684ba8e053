"""Users of an identity provider: one user per pair of issuer and subject, permanently.

The roles in a token count for the request that it came with. The roles of the latest token are
stored with the user for use by others: an owner grants budgets to analysts alone.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, insert, null, select, update

from storage.database.database import Database
from storage.database.expressions import USERS_LOCK, lock_for_transaction
from storage.database.statements import Hot
from storage.database.tables import identity, user_role, users
from storage.errors import AlreadyExists
from storage.people.person_facts import record_user
from storage.people.roles import replace_roles
from storage.people.users import User, insert_user

_i, _u, _r = identity.c, users.c, user_role.c
_IDENTITY = (
    select(*_u, null().label("roles"), _i.issued_s)
    .join_from(identity, users, _u.id == _i.user_id)
    .where(_i.issuer == bindparam("issuer"), _i.subject == bindparam("subject"))
)
_FIND = Hot(_IDENTITY)
#: The lengths, in hexadecimal digits, of the digest in the name of a new user. The longer one is
#: used only if the shorter name is taken.
DIGITS = (16, 64)


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of an identity provider, without roles: those are in each token.

    ``issued``: the time of the latest token, seconds.
    """

    user: User
    issued: int


def _identity(row: Any) -> Identity:
    return Identity(User.of(row), row.issued_s)


class Identities:
    """The identities of one database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, issuer: str, subject: str) -> Identity | None:
        """The user without roles; None for a new pair. Only reads."""
        rows = self._database.look_up(_FIND, issuer=issuer, subject=subject)
        return _identity(rows[0]) if rows else None

    def admit(
        self, issuer: str, subject: str, roles: frozenset[str], issued: int
    ) -> Identity | None:
        """Create the user, or store the roles of a token that is the latest so far.

        Args:
            issued: the time of the token, seconds; an older token changes nothing.

        Returns: as ``find``; None if both names that the user could have are taken.
        """
        pair = {"issuer": issuer, "subject": subject}

        def work(connection: Connection) -> Identity | None:
            lock_for_transaction(connection, USERS_LOCK)
            row = connection.execute(_IDENTITY, pair).one_or_none()
            if row is None:
                if not self._create(connection, pair, roles, issued):
                    return None
                row = connection.execute(_IDENTITY, pair).one()
            elif row.issued_s < issued and not row.disabled:
                self._renew(connection, row.id, roles, issued)
            return _identity(row)

        return self._database.write(work)

    def _create(
        self, connection: Connection, pair: dict[str, str], roles: Iterable[str], issued: int
    ) -> bool:
        for name in names(**pair):
            try:
                user_id = insert_user(connection, name, roles)
            except AlreadyExists:
                continue
            values = {"user_id": user_id, **pair, "issued_s": issued}
            connection.execute(insert(identity).values(values))
            detail = {**pair, "roles": sorted(roles)}
            record_user(connection, user_id, user_id, "user.identity", detail)
            return True
        return False

    def _renew(
        self, connection: Connection, user_id: int, roles: frozenset[str], issued: int
    ) -> None:
        latest = update(identity).where(_i.user_id == user_id).values(issued_s=issued)
        connection.execute(latest)
        stored = select(_r.role).where(_r.user_id == user_id)
        if set(connection.execute(stored).scalars()) == roles:
            return
        replace_roles(connection, user_id, roles)
        record_user(connection, user_id, user_id, "user.roles", {"roles": sorted(roles)})


def names(issuer: str, subject: str) -> list[str]:
    """Names for the user, best first: the legible part of the subject, and a digest of the pair.

    Danger: a claim that people choose themselves must never be the name, because it could mislead
    an owner who grants a budget to that name.
    """
    digest = sha256(json.dumps([issuer, subject]).encode()).hexdigest()
    legible = re.sub(r"[^A-Za-z0-9]+", "-", subject)[:30].strip("-") or "user"
    return [f"{legible}.{digest[:digits]}" for digits in DIGITS]
