"""Calls of admins on users and keys. All users may list, issue and revoke their own keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from privypurse.accounts import Balance, Key, User
from privypurse.amounts import Number, limit
from privypurse.connection import Connection, part
from privypurse.frames import Listing


@dataclass(frozen=True)
class IssuedKey:
    """A new key. Store ``key``: the service never returns it again."""

    id: str
    key: str


class Administration:
    """Users, roles, keys and overall limits; a part of ``PrivyPurse``."""

    _connection: Connection

    def users(self) -> Listing[User]:
        """All users, newest first."""
        return Listing(User.of(one) for one in self._connection.pages("/v1/users"))

    def create_user(self, name: str, *roles: str) -> IssuedKey:
        """Create a user with a first key; roles: ``admin``, ``owner``, ``analyst``, ``auditor``."""
        body = {"name": name, "roles": list(roles)}
        reply = self._connection.json("POST", "/v1/users", json=body, repeatable=False)
        return IssuedKey(reply["key_id"], reply["key"])

    def change_roles(self, name: str, *roles: str) -> User:
        """Replace the roles of a user."""
        return self._change(name, roles=list(roles))

    def disable_user(self, name: str) -> User:
        """Disable a user; from then on none of the user's keys is accepted."""
        return self._change(name, disabled=True)

    def enable_user(self, name: str) -> User:
        """Enable a user again; the keys that are not revoked are accepted again."""
        return self._change(name, disabled=False)

    def limit_user(self, name: str, *, epsilon: Number, delta: Number = 0) -> Balance:
        """Set the limit of one analyst over all datasets together."""
        path = f"/v1/users/{part(name)}/budget"
        return Balance.of(self._connection.json("PUT", path, json=limit(epsilon, delta)))

    def keys(self, name: str) -> Listing[Key]:
        """The ids and states of a user's keys, never the keys themselves."""
        path = f"/v1/users/{part(name)}/keys"
        return Listing(Key.of(one) for one in self._connection.json("GET", path)["items"])

    def issue_key(
        self,
        name: str,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        until: datetime | None = None,
        datasets: Sequence[str] | None = None,
    ) -> IssuedKey:
        """Issue one more key to a user, restricted for a notebook or a program if you like.

        With ``epsilon`` it has a budget of its own below the user's. From ``until`` on, a moment
        with a time zone, it is refused. It may query only the ``datasets``. A restricted key
        issues no keys; with a limit or datasets it acts as an analyst alone.
        """
        path = f"/v1/users/{part(name)}/keys"
        body: dict[str, Any] = {} if epsilon is None else dict(limit(epsilon, delta))
        if until is not None:
            body["until"] = until.isoformat()
        if datasets is not None:
            body["datasets"] = list(datasets)
        reply = self._connection.json("POST", path, json=body, repeatable=False)
        return IssuedKey(reply["key_id"], reply["key"])

    def revoke_key(self, key_id: str) -> None:
        """Revoke a key; it is never accepted again."""
        self._connection.send("DELETE", f"/v1/keys/{part(key_id)}")

    def _change(self, name: str, **change: object) -> User:
        return User.of(self._connection.json("PATCH", f"/v1/users/{part(name)}", json=change))
