"""API keys: ``pp_<id>_<secret>``, a public id and 256 random bits, both in hexadecimal.

A key is shown once, and only the SHA-256 of its secret is stored. A random secret of that size
cannot be guessed, so it needs no slow hash.
"""

import os
import re
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex
from typing import Any

from sqlalchemy import Connection, insert, select, update

from storage.database.expressions import now_us
from storage.database.tables import api_key
from storage.errors import NotFound
from storage.people.key_scopes import KeyScope, stored_datasets

_KEY = re.compile(r"pp_([0-9a-f]{16})_([0-9a-f]{64})")
#: Microseconds from one stored use of a key to the next. Uses in between are not stored, which
#: saves writes.
LAST_USED_US = 60 * 1_000_000

_k = api_key.c


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its secret, as it is shown once."""

    key: str = field(repr=False)
    key_id: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A stored key without its secret; ``last_used_us`` is exact to a minute."""

    key_id: str
    created_us: int
    last_used_us: int | None
    revoked: bool
    scope: KeyScope


def new_key() -> tuple[IssuedKey, bytes]:
    """A new key, and the hash of its secret for the database."""
    key_id, secret = token_hex(8), token_hex(32)
    return IssuedKey(f"pp_{key_id}_{secret}", key_id), sha256(secret.encode()).digest()


def parse_key(key: str) -> tuple[str, str] | None:
    """Returns the id and the secret of a key; None for a text of another form."""
    match = _KEY.fullmatch(key)
    return None if match is None else (match[1], match[2])


def matches(secret: str, secret_hash: bytes) -> bool:
    """Compares a secret with a stored hash in constant time."""
    return compare_digest(sha256(secret.encode()).digest(), secret_hash)


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What a new key is restricted to; ``limited`` if it gets an account of its own."""

    limited: bool = False
    datasets: frozenset[int] | None = None
    until_us: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of ``api_key``."""
        return {
            "limited": int(self.limited),
            "datasets": stored_datasets(self.datasets),
            "until_us": self.until_us,
        }


NO_RESTRICTIONS = Restrictions()


def insert_key(
    connection: Connection, user_id: int, restrictions: Restrictions = NO_RESTRICTIONS
) -> IssuedKey:
    """A new key, stored for a user."""
    issued, secret_hash = new_key()
    values = {"id": issued.key_id, "user_id": user_id, "secret_hash": secret_hash}
    values |= restrictions.columns
    connection.execute(insert(api_key).values(**values, created_us=now_us()))
    return issued


def keys_of_user(connection: Connection, user_id: int) -> list[KeyInfo]:
    """The keys of a user, newest first."""
    keys = select(api_key).where(_k.user_id == user_id).order_by(_k.created_us.desc(), _k.id)
    return [
        KeyInfo(
            *(row.id, row.created_us, row.last_used_us, row.revoked_us is not None),
            KeyScope.of(row.id, row),
        )
        for row in connection.execute(keys)
    ]


def revoke_key(connection: Connection, key_id: str) -> bool:
    """Revokes a key. Returns False if it is revoked already. Raises: NotFound."""
    valid = update(api_key).where(_k.id == key_id, _k.revoked_us.is_(None))
    if connection.execute(valid.values(revoked_us=now_us())).rowcount:
        return True
    if connection.execute(select(_k.id).where(_k.id == key_id)).one_or_none() is None:
        raise NotFound("there is no such key")
    return False


def write_key_file(path: Path, key: str) -> None:
    """Writes only the key into ``path``, atomically; the file has mode 0600 from the start."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
