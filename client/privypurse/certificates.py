"""Certificates, and their verification without a network.

Danger: two base64url texts may decode to the same bytes. Each part is therefore encoded again and
compared, so that no changed byte of a file passes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from privypurse.connection import Connection, part
from privypurse.problems import PurseError

TYPE = "privypurse-certificate"


class CertificateInvalid(PurseError):
    """The file is not a certificate, was changed, or was signed by another key."""


@dataclass(frozen=True)
class Certificate:
    """A verified certificate. ``statement``: what the service claims; ``key_id``: who signed it."""

    statement: Mapping[str, Any]
    key_id: str


class Certificates:
    """Certificates of answers and datasets; a part of ``PrivyPurse``."""

    _connection: Connection

    def certificate(self, query_id: str) -> str:
        """The certificate of an own answer, as the text of its file; free."""
        return self._connection.send("GET", f"/v1/queries/{part(query_id)}/certificate").text

    def dataset_certificate(self, name: str) -> str:
        """The certificate of a dataset, for its owner and auditors; it shows no released value."""
        return self._connection.send("GET", f"/v1/datasets/{part(name)}/certificate").text

    def certificate_keys(self) -> dict[str, Any]:
        """The public keys of all certificates of the service; keep them to verify offline."""
        keys: dict[str, Any] = self._connection.json("GET", "/v1/certificate-keys")
        return keys


def verify_certificate(text: str | bytes, keys: Mapping[str, Any]) -> Certificate:
    """Verify the exact bytes of a certificate, without a network.

    ``keys``: what ``certificate_keys`` returned, or one JSON Web Key. Raises: CertificateInvalid.
    """
    content = text.encode() if isinstance(text, str) else text
    pieces = content.split(b".")
    if len(pieces) != 3:
        raise CertificateInvalid("this is no certificate: it does not have three parts")
    header_text, payload, signature = map(_decoded, pieces)
    header = _object(header_text)
    if header.get("alg") != "EdDSA" or header.get("typ") != TYPE:
        raise CertificateInvalid("this is no certificate of this service: its header is another")
    _check_signature(_key(keys, header.get("kid")), signature, b".".join(pieces[:2]))
    statement = _object(payload)
    _check_binding(statement)
    return Certificate(statement, str(header["kid"]))


def _decoded(piece: bytes) -> bytes:
    try:
        content = base64.b64decode(piece + b"=" * (-len(piece) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise CertificateInvalid("a part of the certificate is not base64url") from None
    if base64.urlsafe_b64encode(content).rstrip(b"=") != piece:
        raise CertificateInvalid("a part of the certificate is not in its canonical form")
    return content


def _object(text: bytes) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise CertificateInvalid("a part of the certificate is not JSON") from None
    if not isinstance(value, dict):
        raise CertificateInvalid("a part of the certificate is not a JSON object")
    return value


def _key(keys: Mapping[str, Any], kid: object) -> bytes:
    listed = keys.get("keys", [keys])
    for key in listed if isinstance(listed, list) else []:
        is_named = isinstance(key, dict) and isinstance(kid, str) and key.get("kid") == kid
        if is_named and (key.get("kty"), key.get("crv")) == ("OKP", "Ed25519"):
            return _decoded(str(key.get("x", "")).encode())
    raise CertificateInvalid("none of the keys is the one that signed this certificate")


def _check_signature(key: bytes, signature: bytes, signed: bytes) -> None:
    # Imported here, because only this function needs the library, which takes time to load.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise CertificateInvalid("the signature is not that of this text and this key") from None


def _check_binding(statement: Mapping[str, Any]) -> None:
    """Compare the reply in the certificate of an answer with the digest that binds it."""
    binding = statement.get("binding")
    if binding is None:
        return
    reply = str(statement.get("reply", "")).encode()
    if sha256(bytes.fromhex(binding["salt"]) + reply).hexdigest() != binding["digest"]:
        raise CertificateInvalid("the reply in the certificate is not the one that it binds")
