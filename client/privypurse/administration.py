"""Calls of admins: users and keys. Users may list, issue and revoke keys of their own."""

from __future__ import annotations

from dataclasses import dataclass

from privypurse.accounts import Key, Standing, User
from privypurse.amounts import Number, limit
from privypurse.connection import Connection, part


@dataclass(frozen=True)
class IssuedKey:
    """A new key. ``key`` is shown this once: keep it."""

    id: str
    key: str


class Administration:
    """Users, roles, keys and overall limits; a part of ``PrivyPurse``."""

    _connection: Connection

    def users(self) -> list[User]:
        """All users, newest first."""
        return [User.of(one) for one in self._connection.pages("/v1/users")]

    def create_user(self, name: str, *roles: str) -> IssuedKey:
        """A user with a first key; roles are ``admin``, ``owner``, ``analyst``, ``auditor``."""
        body = {"name": name, "roles": list(roles)}
        made = self._connection.json("POST", "/v1/users", json=body, repeatable=False)
        return IssuedKey(made["key_id"], made["key"])

    def change_roles(self, name: str, *roles: str) -> User:
        """Replace the roles of a user."""
        return self._change(name, roles=list(roles))

    def disable_user(self, name: str) -> User:
        """The user's keys stop working at once."""
        return self._change(name, disabled=True)

    def enable_user(self, name: str) -> User:
        """The user's keys work again."""
        return self._change(name, disabled=False)

    def limit_user(self, name: str, *, epsilon: Number, delta: Number = 0) -> Standing:
        """Set what one analyst may learn of all datasets together."""
        path = f"/v1/users/{part(name)}/budget"
        return Standing.of(self._connection.json("PUT", path, json=limit(epsilon, delta)))

    def keys(self, name: str) -> list[Key]:
        """Ids of a user's keys; never the keys."""
        path = f"/v1/users/{part(name)}/keys"
        return [Key.of(one) for one in self._connection.json("GET", path)["items"]]

    def issue_key(self, name: str) -> IssuedKey:
        """One more key for a user."""
        path = f"/v1/users/{part(name)}/keys"
        made = self._connection.json("POST", path, repeatable=False)
        return IssuedKey(made["key_id"], made["key"])

    def revoke_key(self, key_id: str) -> None:
        """The key stops working at once."""
        self._connection.send("DELETE", f"/v1/keys/{part(key_id)}")

    def _change(self, name: str, **change: object) -> User:
        return User.of(self._connection.json("PATCH", f"/v1/users/{part(name)}", json=change))
