"""Users: their names, roles and keys."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Row, Select, and_, bindparam, delete, func, or_, select, update

from storage.database.database import Database
from storage.database.expressions import USERS_LOCK, insert_once, lock_for_transaction, now_us
from storage.database.pages import Page, page_of
from storage.database.statements import Hot
from storage.database.tables import api_key, identity, users, web_session
from storage.errors import AlreadyExists, Conflict, ManagedElsewhere, NotFound
from storage.people.key_scopes import WHOLE, KeyScope
from storage.people.keys import (
    LAST_USED_US,
    NO_RESTRICTIONS,
    IssuedKey,
    KeyInfo,
    Restrictions,
    insert_key,
    keys_of_user,
    matches,
    parse_key,
    revoke_key,
    write_key_file,
)
from storage.people.person_facts import record_key, record_user
from storage.people.roles import (
    ROLES,
    has_enabled_admin,
    insert_roles,
    replace_roles,
    split_roles,
)

FIRST_ADMIN = "admin"

_u, _k = users.c, api_key.c
_USERS: Select[Any] = select(*_u, ROLES)
#: The columns of a user and of an API key from which ``SignedIn.of`` makes the user who signs in.
SIGNED_IN = (
    *(*_u, ROLES, _k.id.label("key_id"), _k.last_used_us, now_us().label("now")),
    *(_k.limited, _k.datasets, _k.until_us),
)
#: The condition under which a key is accepted: it is neither revoked nor past its end, and its user
#: is not disabled.
IS_VALID = and_(
    _k.revoked_us.is_(None), or_(_k.until_us.is_(None), _k.until_us > now_us()), _u.disabled == 0
)
_SIGN_IN = Hot(
    select(*SIGNED_IN, _k.secret_hash)
    .join_from(api_key, users, _u.id == _k.user_id)
    .where(_k.id == bindparam("key"), IS_VALID)
)


@dataclass(frozen=True, slots=True)
class User:
    """A person who may sign in; ``roles`` ⊆ {admin, owner, analyst, auditor}.

    For a caller, ``scope`` is that of the key, and ``roles`` are those in which the key may act.
    """

    id: int
    name: str
    roles: frozenset[str]
    disabled: bool
    created_us: int
    scope: KeyScope = WHOLE

    @classmethod
    def of(cls, row: Row[Any]) -> Self:
        """The user in a row of ``users`` with ``ROLES``."""
        roles = split_roles(row.roles)
        return cls(row.id, row.name, roles, bool(row.disabled), row.created_us)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A caller and their key. If ``stale``, the last use of the key is to be stored again."""

    user: User
    key_id: str
    stale: bool

    @classmethod
    def of(cls, row: Row[Any]) -> Self:
        """The caller in a row of ``SIGNED_IN``."""
        stale = row.last_used_us is None or row.last_used_us < row.now - LAST_USED_US
        user, scope = User.of(row), KeyScope.of(row.key_id, row)
        if scope.is_restricted:
            user = replace(user, roles=scope.roles(user.roles), scope=scope)
        return cls(user, row.key_id, stale)


class Users:
    """The users of one database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bootstrap(self, key_file: Path) -> bool:
        """Create the first admin if there is no user. Returns True if this call created it.

        The file holds the key alone and is written before the admin is committed. A crash in
        between leaves a key that is not valid, and the next start replaces it.
        """

        def work(connection: Connection) -> bool:
            lock_for_transaction(connection, USERS_LOCK)
            if _has_users(connection):
                return False
            user_id = insert_user(connection, FIRST_ADMIN, {"admin"})
            issued = insert_key(connection, user_id)
            record_user(connection, user_id, user_id, "user.bootstrap", {})
            record_key(
                connection, user_id, issued.key_id, "key.issue", FIRST_ADMIN, {}, in_trail=False
            )
            write_key_file(key_file, issued.key)
            return True

        with self._database.read() as connection:
            if _has_users(connection):
                return False
        return self._database.write(work)

    def sign_in(self, key: str) -> SignedIn | None:
        """The user of a key; None if it is unknown, revoked or past its end, or its user disabled.

        Only reads: where the use is stale, the caller calls ``note_use``.
        Nothing is cached between two calls. A revoked key, a disabled user and a lost role count
        from the next request on, in every process.
        """
        parsed = parse_key(key)
        if parsed is None:
            return None
        key_id, secret = parsed
        rows = self._database.look_up(_SIGN_IN, key=key_id)
        return SignedIn.of(rows[0]) if rows and matches(secret, rows[0].secret_hash) else None

    def create(self, name: str, roles: Iterable[str], *, actor: User) -> tuple[User, IssuedKey]:
        """A new user and a first key. Raises: AlreadyExists."""
        distinct = frozenset(roles)

        def work(connection: Connection) -> tuple[User, IssuedKey]:
            user_id = insert_user(connection, name, distinct)
            issued = insert_key(connection, user_id)
            detail = {"roles": sorted(distinct), "key_id": issued.key_id}
            record_user(connection, actor.id, user_id, "user.create", detail)
            record_key(connection, actor.id, issued.key_id, "key.issue", name, {}, in_trail=False)
            return _user(connection, name), issued

        return self._database.write(work)

    def find(self, name: str) -> User | None:
        with self._database.read() as connection:
            row = connection.execute(_USERS.where(_u.name == name)).one_or_none()
        return None if row is None else User.of(row)

    def page(self, limit: int, cursor: str | None = None, search: str = "") -> Page[User]:
        """Users whose names contain ``search``, newest first; upper and lower case are alike."""
        statement = _USERS.where(_u.name.icontains(search, autoescape=True)) if search else _USERS
        return page_of(self._database, statement, [_u.id], limit, cursor, User.of)

    def update(
        self,
        name: str,
        *,
        roles: Iterable[str] | None = None,
        disabled: bool | None = None,
        actor: User,
    ) -> User:
        """Replace roles, disable or enable.

        Raises: NotFound; Conflict if no enabled admin with keys would remain; ManagedElsewhere if
        an identity provider assigns the roles.
        """
        distinct = None if roles is None else frozenset(roles)

        def work(connection: Connection) -> User:
            # Without the lock, the last two admins could disable each other concurrently, and no
            # admin would remain.
            lock_for_transaction(connection, USERS_LOCK)
            user_id = _user(connection, name).id
            detail: dict[str, Any] = {}
            if distinct is not None:
                if _has_provider(connection, user_id):
                    raise ManagedElsewhere("this user's roles are given elsewhere")
                replace_roles(connection, user_id, distinct)
                detail["roles"] = sorted(distinct)
            if disabled is not None:
                statement = update(users).where(_u.id == user_id).values(disabled=int(disabled))
                connection.execute(statement)
                detail["disabled"] = disabled
            if disabled:
                # Ends the sessions of a user who is being disabled. They stay ended if the user is
                # enabled again.
                keys = select(_k.id).where(_k.user_id == user_id)
                connection.execute(delete(web_session).where(web_session.c.key_id.in_(keys)))
            if not has_enabled_admin(connection):
                raise Conflict("the service would be left without an enabled admin")
            record_user(connection, actor.id, user_id, "user.update", detail)
            return _user(connection, name)

        return self._database.write(work)

    # ---------------------------------------------------------------- keys

    def issue_key(
        self,
        name: str,
        *,
        actor: User,
        restrictions: Restrictions = NO_RESTRICTIONS,
        open_account: Callable[[Connection, int, str], None] | None = None,
        key_file: Path | None = None,
    ) -> IssuedKey:
        """One more key for the user, shown here and never again.

        ``open_account`` opens the account of a limited key, in the same transaction, given the ids
        of the user and of the key. ``key_file`` is written before the key is committed.
        Raises: NotFound; OSError if the file cannot be written; ManagedElsewhere for a user of an
        identity provider: a key would stay valid after the provider has removed the user.
        """
        if restrictions.limited != (open_account is not None):
            raise ValueError("a limited key, and no other, has an account of its own")

        def work(connection: Connection) -> IssuedKey:
            user_id = _user(connection, name).id
            if _has_provider(connection, user_id):
                raise ManagedElsewhere("this user signs in elsewhere, without keys")
            issued = insert_key(connection, user_id, restrictions)
            detail = {"key_id": issued.key_id}
            record_key(connection, actor.id, issued.key_id, "key.issue", name, detail)
            if open_account is not None:
                open_account(connection, user_id, issued.key_id)
            if key_file is not None:
                write_key_file(key_file, issued.key)
            return issued

        return self._database.write(work)

    def keys(self, name: str) -> list[KeyInfo]:
        """The user's keys, newest first. Raises: NotFound."""
        with self._database.read() as connection:
            return keys_of_user(connection, _user(connection, name).id)

    def owner_of_key(self, key_id: str) -> str | None:
        """The name of the user of a key, also of a revoked one."""
        names = select(_u.name).join_from(api_key, users, _u.id == _k.user_id)
        with self._database.read() as connection:
            return connection.execute(names.where(_k.id == key_id)).scalar_one_or_none()

    def revoke(self, key_id: str, *, actor: User) -> None:
        """Revoke a key. A second call changes nothing. Raises: NotFound."""

        def work(connection: Connection) -> None:
            if revoke_key(connection, key_id):
                record_key(connection, actor.id, key_id, "key.revoke", key_id, {})

        self._database.write(work)

    def note_use(self, key_id: str) -> None:
        """Store that a key is used now, unless a use within the last minute is stored."""
        stale = or_(_k.last_used_us.is_(None), _k.last_used_us < now_us() - LAST_USED_US)
        use = update(api_key).where(_k.id == key_id, stale).values(last_used_us=now_us())
        self._database.write(lambda connection: connection.execute(use))


def _has_users(connection: Connection) -> bool:
    return connection.execute(select(_u.id).limit(1)).first() is not None


def _user(connection: Connection, name: str) -> User:
    row = connection.execute(_USERS.where(_u.name == name)).one_or_none()
    if row is None:
        raise NotFound("there is no such user")
    return User.of(row)


def _has_provider(connection: Connection, user_id: int) -> bool:
    """True if the user signs in with tokens of an identity provider."""
    row = select(identity.c.user_id).where(identity.c.user_id == user_id)
    return connection.execute(row).first() is not None


def insert_user(connection: Connection, name: str, roles: Iterable[str]) -> int:
    """The id of a new user. Raises: AlreadyExists, also for a name that differs by case alone."""
    # No constraint compares names without their case, so the lock admits one insert at a time.
    lock_for_transaction(connection, USERS_LOCK)
    same = select(_u.id).where(func.lower(_u.name) == name.lower())
    if connection.execute(same.limit(1)).first() is not None:
        raise AlreadyExists(
            "the name is taken, or was once: choose another; upper and lower case are the same"
        )
    at_us = connection.execute(select(now_us())).scalar_one()
    user_id = connection.execute(
        insert_once(connection.dialect.name, users, "name").returning(_u.id),
        {"name": name, "disabled": 0, "created_us": at_us},
    ).scalar_one_or_none()
    if user_id is None:
        raise AlreadyExists("the name is taken, or was once: choose another")
    insert_roles(connection, user_id, roles)
    return int(user_id)
