"""The public keys of an OpenID provider.

Danger: anybody may send tokens with unknown key ids, and each must not cause a fetch
(``app.identity.published``). PyJWT parses the keys. Its own client is not used, because it limits
fetches only after a success, reads replies of any length, and blocks one thread per caller.
"""

from collections.abc import Mapping
from typing import Any

import jwt

from app.config.openid import OpenID, is_safe
from app.identity.published import Published, Unfetched, fetched

MOST_KEYS = 100

Keys = Mapping[tuple[str, str], jwt.PyJWK]


class SigningKeys:
    """The keys of one provider, by key id and algorithm. An instance belongs to one event loop.

    A key for an algorithm that the settings do not list is left out.
    """

    def __init__(self, openid: OpenID) -> None:
        self._openid = openid
        self._published = Published("keys", self._keys_now)

    async def find(self, key_id: str, algorithm: str) -> jwt.PyJWK | None:
        """The key with this id for this algorithm; None if there is none or keys are too old."""
        keys = await self._published.get(lambda keys: (key_id, algorithm) in keys)
        return None if keys is None else keys.get((key_id, algorithm))

    async def find_only(self, algorithm: str) -> jwt.PyJWK | None:
        """The only key for this algorithm; None if there are several, none, or they are too old.

        OpenID Connect Core, section 10.1: an ID token names its key only if there are several.
        """
        published = await self._published.get(bool)
        keys = [key for (_, name), key in (published or {}).items() if name == algorithm]
        return keys[0] if len(keys) == 1 else None

    def _keys_now(self) -> Keys:
        url, issuer = self._openid.jwks_url, self._openid.issuer
        if url is None:
            metadata = fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            url = metadata.get("jwks_uri")
            if metadata.get("issuer") != issuer:
                raise Unfetched
            if not isinstance(url, str) or not is_safe(url):
                raise Unfetched
        published = fetched(url).get("keys")
        if not isinstance(published, list):
            raise Unfetched
        keys: dict[tuple[str, str], jwt.PyJWK] = {}
        for key in published[:MOST_KEYS]:
            if not isinstance(key, dict) or key.get("use", "sig") != "sig":
                continue
            key_id = key.get("kid")
            for algorithm in self._openid.algorithms:
                if isinstance(key_id, str) and key.get("alg", algorithm) == algorithm:
                    usable = _public_key(key, algorithm)
                    if usable is not None:
                        keys.setdefault((key_id, algorithm), usable)
        return keys


def _public_key(key: dict[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """The public key for this algorithm; None if the key is not usable for it."""
    if key.get("kty") not in ("RSA", "EC", "OKP"):
        # Keys of other types are shared secrets: whoever verifies with one could also sign. So they
        # are not used.
        return None
    public = {name: value for name, value in key.items() if name != "d"}
    try:
        return jwt.PyJWK(public, algorithm)
    except Exception:
        return None  # The library cannot read this key, so the key is left out.
