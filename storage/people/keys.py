"""API keys: ``pp_<id>_<secret>``, a public id and 256 random bits, both in hexadecimal.

Random secrets of that size need no slow hash: nobody can try them out.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex

_KEY = re.compile(r"pp_([0-9a-f]{16})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key as it is shown, once."""

    key: str = field(repr=False)
    key_id: str


def new_key() -> tuple[IssuedKey, bytes]:
    """A new key, and the hash of its secret to be stored."""
    key_id, secret = token_hex(8), token_hex(32)
    return IssuedKey(f"pp_{key_id}_{secret}", key_id), sha256(secret.encode()).digest()


def parse_key(key: str) -> tuple[str, str] | None:
    """(id, secret); None for what was never issued."""
    match = _KEY.fullmatch(key)
    return None if match is None else (match[1], match[2])


def matches(secret: str, secret_hash: bytes) -> bool:
    """In constant time."""
    return compare_digest(sha256(secret.encode()).digest(), secret_hash)


def write_key_file(path: Path, key: str) -> None:
    """Put the key alone into ``path``, 0600 from its first moment, whole or not at all."""
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
