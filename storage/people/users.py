"""People and their keys. A key is shown once; only the SHA-256 of its 256-bit secret is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from storage.database.database import Database
from storage.database.expressions import USERS_LOCK, insert_once, lock_for_transaction, now_us
from storage.database.pages import Page, decode_cursor, page_of
from storage.database.statements import Hot
from storage.database.tables import api_key, identity, user_role, users, web_session
from storage.errors import AlreadyExists, Conflict, ManagedElsewhere, NotFound
from storage.journal import audit
from storage.people.keys import IssuedKey, matches, new_key, parse_key, write_key_file

FIRST_ADMIN = "admin"
#: How exactly the last use of a key is known.
LAST_USED_US = 60 * 1_000_000


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may sign in; ``roles`` ⊆ {admin, owner, analyst, auditor}."""

    id: int
    name: str
    roles: frozenset[str]
    disabled: bool
    created_us: int


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What is known of a key afterwards; ``last_used_us`` is exact to a minute."""

    key_id: str
    created_us: int
    last_used_us: int | None
    revoked: bool


_u, _k, _r = users.c, api_key.c, user_role.c
# In the text itself: a separator that is a parameter would be filled in at every execution.
_COMMA: Any = literal_column("','")
ROLES_OF_USER = (
    select(func.aggregate_strings(_r.role, _COMMA))
    .where(_r.user_id == _u.id)
    .correlate(users)
    .scalar_subquery()
)
_SIGN_IN = Hot(
    select(
        *_u, ROLES_OF_USER.label("roles"), _k.secret_hash, _k.last_used_us, now_us().label("now")
    )
    .join_from(api_key, users, _u.id == _k.user_id)
    .where(_k.id == bindparam("key_id"), _k.revoked_us.is_(None), _u.disabled == 0)
)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A caller and their key; the last use of a ``stale`` one is to be written down again."""

    user: User
    key_id: str
    stale: bool


@lru_cache(maxsize=64)
def _roles(joined: str | None) -> frozenset[str]:
    return frozenset((joined or "").split(",")) - {""}


class Users:
    """The users of one database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bootstrap(self, key_file: Path) -> bool:
        """Make the first admin when there is no user at all; True when it was made here.

        The file holds the key alone and is there before the admin is: a crash in between leaves a
        key that opens nothing, and the next start replaces it.
        """

        def work(connection: Connection) -> bool:
            lock_for_transaction(connection, USERS_LOCK)
            if connection.execute(select(_u.id).limit(1)).one_or_none() is not None:
                return False
            user_id = insert_user(connection, FIRST_ADMIN, {"admin"})
            issued = _insert_key(connection, user_id)
            audit.record(connection, user_id, "user.bootstrap", FIRST_ADMIN, {})
            write_key_file(key_file, issued.key)
            return True

        with self._database.read() as connection:
            if connection.execute(select(_u.id).limit(1)).one_or_none() is not None:
                return False
        return self._database.write(work)

    def authenticate(self, key: str) -> User | None:
        """Whose key this is; None for one that is unknown, revoked, or of a disabled user."""
        signed_in = self.sign_in(key)
        if signed_in is None:
            return None
        if signed_in.stale:
            self.note_use(signed_in.key_id)
        return signed_in.user

    def sign_in(self, key: str) -> SignedIn | None:
        """``authenticate`` that only reads; ``note_use`` is left to the caller.

        Nothing is kept between two calls: a revoked key, a disabled user and a lost role count
        from the next request on, in every process.
        """
        parsed = parse_key(key)
        if parsed is None:
            return None
        key_id, secret = parsed
        rows = self._database.look_up(_SIGN_IN, key_id=key_id)
        if not rows or not matches(secret, rows[0].secret_hash):
            return None
        row = rows[0]
        user = User(row.id, row.name, _roles(row.roles), bool(row.disabled), row.created_us)
        stale = row.last_used_us is None or row.last_used_us < row.now - LAST_USED_US
        return SignedIn(user, key_id, stale)

    def create(self, name: str, roles: Iterable[str], *, actor: User) -> tuple[User, IssuedKey]:
        """A new user and a first key. Raises: AlreadyExists."""
        wanted = frozenset(roles)

        def work(connection: Connection) -> IssuedKey:
            user_id = insert_user(connection, name, wanted)
            issued = _insert_key(connection, user_id)
            detail = {"roles": sorted(wanted), "key_id": issued.key_id}
            audit.record(connection, actor.id, "user.create", name, detail)
            return issued

        issued = self._database.write(work)
        return self._existing(name), issued

    def find(self, name: str) -> User | None:
        with self._database.read() as connection:
            row = connection.execute(select(users).where(_u.name == name)).one_or_none()
            return None if row is None else _user(connection, row)

    def page(self, limit: int, cursor: str | None = None) -> Page[User]:
        wanted: Select[Any] = select(users)
        if cursor is not None:
            wanted = wanted.where(_u.id < decode_cursor(cursor, int)[0])
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(_u.id.desc()).limit(limit + 1)).all()
            return page_of(rows, limit, lambda row: _user(connection, row), lambda row: (row.id,))

    def update(
        self,
        name: str,
        *,
        roles: Iterable[str] | None = None,
        disabled: bool | None = None,
        actor: User,
    ) -> User:
        """Replace roles, disable or enable.

        Raises: NotFound; Conflict when no enabled admin with keys would be left; ManagedElsewhere
        when the roles are the business of an identity provider.
        """
        wanted = None if roles is None else frozenset(roles)

        def work(connection: Connection) -> None:
            # Two admins who disable each other at once are made to wait for each other.
            lock_for_transaction(connection, USERS_LOCK)
            user_id = _user_id(connection, name)
            detail: dict[str, Any] = {}
            if wanted is not None:
                if _is_vouched_for(connection, user_id):
                    raise ManagedElsewhere("this user's roles are given elsewhere")
                connection.execute(delete(user_role).where(_r.user_id == user_id))
                insert_roles(connection, user_id, wanted)
                detail["roles"] = sorted(wanted)
            if disabled is not None:
                changed = update(users).where(_u.id == user_id).values(disabled=int(disabled))
                connection.execute(changed)
                detail["disabled"] = disabled
            if disabled:
                # Who is enabled again later signs in again.
                theirs = select(_k.id).where(_k.user_id == user_id)
                connection.execute(delete(web_session).where(web_session.c.key_id.in_(theirs)))
            if connection.execute(_ENABLED_ADMINS).scalar_one() == 0:
                raise Conflict("the service would be left without an enabled admin")
            audit.record(connection, actor.id, "user.update", name, detail)

        self._database.write(work)
        return self._existing(name)

    # ---------------------------------------------------------------- keys

    def issue_key(self, name: str, *, actor: User) -> IssuedKey:
        """One more key for the user, shown here and never again.

        Raises: NotFound; ManagedElsewhere where an identity provider vouches for the user: a key
        would outlive that.
        """

        def work(connection: Connection) -> IssuedKey:
            user_id = _user_id(connection, name)
            if _is_vouched_for(connection, user_id):
                raise ManagedElsewhere("this user signs in elsewhere, without keys")
            issued = _insert_key(connection, user_id)
            audit.record(connection, actor.id, "key.issue", name, {"key_id": issued.key_id})
            return issued

        return self._database.write(work)

    def keys(self, name: str) -> list[KeyInfo]:
        """The user's keys, newest first. Raises: NotFound."""
        with self._database.read() as connection:
            wanted = (
                select(api_key)
                .where(_k.user_id == _user_id(connection, name))
                .order_by(_k.created_us.desc(), _k.id)
            )
            return [
                KeyInfo(row.id, row.created_us, row.last_used_us, row.revoked_us is not None)
                for row in connection.execute(wanted)
            ]

    def owner_of_key(self, key_id: str) -> str | None:
        """The name of the user whose key it is, or was."""
        wanted = select(_u.name).join_from(api_key, users, _u.id == _k.user_id)
        with self._database.read() as connection:
            return connection.execute(wanted.where(_k.id == key_id)).scalar_one_or_none()

    def revoke(self, key_id: str, *, actor: User) -> None:
        """End a key; once more changes nothing. Raises: NotFound."""

        def work(connection: Connection) -> None:
            revoked = connection.execute(
                update(api_key)
                .where(_k.id == key_id, _k.revoked_us.is_(None))
                .values(revoked_us=now_us())
            )
            if revoked.rowcount:
                audit.record(connection, actor.id, "key.revoke", key_id, {})
            elif connection.execute(select(_k.id).where(_k.id == key_id)).one_or_none() is None:
                raise NotFound("there is no such key")

        self._database.write(work)

    def note_use(self, key_id: str) -> None:
        """Write down that a key was used now, unless that was done within the last minute."""
        stale = or_(_k.last_used_us.is_(None), _k.last_used_us < now_us() - LAST_USED_US)
        used = update(api_key).where(_k.id == key_id, stale).values(last_used_us=now_us())
        self._database.write(lambda connection: connection.execute(used))

    def _existing(self, name: str) -> User:
        user = self.find(name)
        assert user is not None, "users are never deleted"
        return user


_ENABLED_ADMINS = (
    select(func.count())
    .select_from(users.join(user_role, _r.user_id == _u.id))
    .where(
        _r.role == "admin",
        _u.disabled == 0,
        # Those whom somebody else vouches for may be gone with the next token.
        _u.id.not_in(select(identity.c.user_id)),
    )
)


def _user(connection: Connection, row: Row[Any]) -> User:
    roles = connection.execute(select(_r.role).where(_r.user_id == row.id)).scalars()
    return User(row.id, row.name, frozenset(roles), bool(row.disabled), row.created_us)


def _user_id(connection: Connection, name: str) -> int:
    found = connection.execute(select(_u.id).where(_u.name == name)).scalar_one_or_none()
    if found is None:
        raise NotFound("there is no such user")
    return int(found)


def _is_vouched_for(connection: Connection, user_id: int) -> bool:
    found = select(identity.c.user_id).where(identity.c.user_id == user_id)
    return connection.execute(found).one_or_none() is not None


def insert_user(connection: Connection, name: str, roles: Iterable[str]) -> int:
    """The id of a new user. Raises: AlreadyExists, also for a name that differs by case alone."""
    # One at a time: no constraint stands behind this, and people must not be mixed up.
    lock_for_transaction(connection, USERS_LOCK)
    like = select(_u.id).where(func.lower(_u.name) == name.lower())
    if connection.execute(like.limit(1)).one_or_none() is not None:
        raise AlreadyExists("the name is taken, or was once; upper and lower case are the same")
    at_us = connection.execute(select(now_us())).scalar_one()
    user_id = connection.execute(
        insert_once(connection.dialect.name, users, "name").returning(_u.id),
        {"name": name, "disabled": 0, "created_us": at_us},
    ).scalar_one_or_none()
    if user_id is None:
        raise AlreadyExists("the name is taken, or was once")
    insert_roles(connection, user_id, roles)
    return int(user_id)


def insert_roles(connection: Connection, user_id: int, roles: Iterable[str]) -> None:
    """Give roles to a user who has none of them."""
    rows = [{"user_id": user_id, "role": role} for role in sorted(roles)]
    if rows:
        connection.execute(insert(user_role), rows)


def _insert_key(connection: Connection, user_id: int) -> IssuedKey:
    issued, secret_hash = new_key()
    connection.execute(
        insert(api_key).values(
            id=issued.key_id, user_id=user_id, secret_hash=secret_hash, created_us=now_us()
        )
    )
    return issued
