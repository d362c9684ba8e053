"""Verifies tokens of an OpenID provider before any of their claims is used.

Danger: anybody can write a token. Keys therefore come from the provider's own address and
algorithms from the settings. What a token says about either (``jku``, ``x5u``, ``jwk``) is ignored.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from app.config.openid import OpenID
from app.identity.signing_keys import SigningKeys

#: The most characters of a token. Longer texts are refused without being parsed.
MAX_TOKEN_LENGTH = 16 * 1024
#: Seconds by which the clocks of the provider and of this service may differ.
LEEWAY = 30
#: The types (header ``typ``) of access tokens. Providers that do not follow RFC 9068 write ``JWT``
#: or no type.
TYPES = frozenset({"at+jwt", "jwt"})
REQUIRED = ["iss", "aud", "sub", "exp", "iat"]
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a verified token, with roles of this service; times are in seconds."""

    issuer: str
    subject: str
    roles: frozenset[str]
    issued: int
    expires: int


def looks_like_a_token(text: str) -> bool:
    """True for three parts with dots between them. A key of this service has no dot."""
    return len(text) <= MAX_TOKEN_LENGTH and _TOKEN.fullmatch(text) is not None


class Tokens:
    """Verifies the tokens of one provider."""

    def __init__(self, openid: OpenID) -> None:
        self._openid, self._keys = openid, SigningKeys(openid)

    async def verified(self, token: str) -> Claims | None:
        """The claims of an access token; None for every token that fails a check."""
        return await self._verified(token, self._openid.audience, None)

    async def verified_id_token(self, token: str, client_id: str, nonce: str) -> Claims | None:
        """The claims of an ID token for this client and this nonce; None if a check fails."""
        if not looks_like_a_token(token):
            return None
        return await self._verified(token, client_id, nonce)

    async def _verified(self, token: str, audience: str, nonce: str | None) -> Claims | None:
        try:
            header = jwt.get_unverified_header(token)
            key_id, algorithm = header.get("kid"), header.get("alg")
            # ``crit`` lists extensions that a reader must support (RFC 7515, 4.1.11). This service
            # supports none, so the token is refused.
            if "crit" in header or not isinstance(key_id, str | None):
                return None
            # A token without a key id (``kid``) is accepted only if it is an ID token, because the
            # service receives that from the provider itself.
            if key_id is None and nonce is None:
                return None
            if algorithm not in self._openid.algorithms or not _is_for_access(header.get("typ")):
                return None
        except Exception:
            return None  # The library cannot parse the text, so it is no token.
        if key_id is None:
            key = await self._keys.find_only(algorithm)
        else:
            key = await self._keys.find(key_id, algorithm)
        if key is None:
            return None
        return await asyncio.to_thread(self._read, token, key, algorithm, audience, nonce)

    def _read(
        self, token: str, key: jwt.PyJWK, algorithm: str, audience: str, nonce: str | None
    ) -> Claims | None:
        openid = self._openid
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=openid.issuer,
                audience=audience,
                leeway=LEEWAY,
                options={"require": REQUIRED},
            )
            subject, issued = claims["sub"], int(claims["iat"])
            # OpenID Connect Core, section 2, limits a subject to 255 ASCII characters.
            if not (0 < len(subject) <= 255 and subject.isascii() and subject.isprintable()):
                return None
            if issued < 0:
                return None
            # OpenID Connect Core, 3.1.3.7: an ID token must contain the nonce of this sign-in, and
            # must have been issued to this client.
            if nonce is not None and (
                claims.get("nonce") != nonce or claims.get("azp", audience) != audience
            ):
                return None
            listed = _listed(claims, openid.roles_claim)
            roles = frozenset(openid.roles[name] for name in listed if name in openid.roles)
            return Claims(openid.issuer, subject, roles, issued, int(claims["exp"]))
        except Exception:
            return None  # The token is forged, expired, for another service, or malformed.


def _is_for_access(kind: object) -> bool:
    """True if the header ``typ`` is that of access tokens (RFC 9068, 2.1), or is absent."""
    if kind is None:
        return True
    return isinstance(kind, str) and kind.lower().removeprefix("application/") in TYPES


def _listed(claims: Mapping[str, Any], name: str) -> list[str]:
    """The texts that the claim ``name`` lists. Dots in a name without ``/`` separate a path.

    Raises: ValueError if there is no such list. A missing list says nothing about roles, while an
    empty one says that there are none.
    """
    value: Any = claims
    for part in [name] if "/" in name else name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, list):
        raise ValueError("the token lists no roles")
    return [item for item in value if isinstance(item, str)]
