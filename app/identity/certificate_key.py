"""The key that signs certificates: Ed25519, in a file of the data folder that only its owner reads.

Danger: whoever has this file can sign anything in the name of the service. It never leaves the
data folder; only the public key is served, and stated by a fact of the journal.
"""

from __future__ import annotations

import base64
import json
import os
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

FILE = "certificate.key"
#: The header ``typ`` of every certificate.
TYPE = "privypurse-certificate"


class CertificateKey:
    """One signing key. ``public`` is its public part, a JSON Web Key (RFC 8037)."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        jwk = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)}
        # The key id is the thumbprint of RFC 7638: the hash of the JSON with sorted members and
        # without blanks.
        thumbprint = sha256(json.dumps(jwk, separators=(",", ":")).encode()).digest()
        self.public = {**jwk, "kid": _base64url(thumbprint), "alg": "EdDSA", "use": "sig"}

    @classmethod
    def open(cls, folder: Path) -> CertificateKey:
        """The key in ``folder``; the first call makes it. Raises: OSError, ValueError."""
        path = folder / FILE
        if not path.exists():
            _make(path)
        key = load_pem_private_key(path.read_bytes(), None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} holds no Ed25519 key")
        return cls(key)

    def signed(self, payload: bytes) -> str:
        """The compact JWS (RFC 7515) over exactly these bytes."""
        headers = {"kid": self.public["kid"], "typ": TYPE}
        return jwt.PyJWS().encode(payload, self._key, algorithm="EdDSA", headers=headers)


def _make(path: Path) -> None:
    """Write a new key, with mode 0600 from the start, unless another process wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        # A link fails if the name exists, so two processes on one folder end up with one key.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
