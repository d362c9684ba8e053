"""The public keys of an OpenID provider, fetched at most once per minute.

Danger: anybody may send tokens with unknown key ids, and each must not cause a fetch. PyJWT parses
the keys. Its own client is not used, because it limits fetches only after a success, reads replies
of any length, and blocks one thread per caller.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
import jwt
import structlog

from app.config.openid import OpenID, is_safe

log = structlog.get_logger("privypurse.identity")

#: The least number of seconds between two attempts to fetch the keys, successful or not.
BETWEEN = 60.0
#: Seconds after which the keys are fetched again, so that a withdrawn key stops working.
FRESH = 600.0
#: Seconds after which fetched keys are no longer used, even if the provider cannot be reached.
BELIEVED = 3600.0
#: Seconds within which one whole reply of the provider must arrive.
PATIENCE = 5.0
LARGEST_REPLY = 256 * 1024
MOST_KEYS = 100

Keys = Mapping[tuple[str, str], jwt.PyJWK]


class Unfetched(Exception):
    """The provider did not answer, or its answer is not what OpenID Connect prescribes."""


class SigningKeys:
    """The keys of one provider, by key id and algorithm. An instance belongs to one event loop.

    A key for an algorithm that the settings do not list is left out.
    """

    def __init__(self, openid: OpenID) -> None:
        self._openid = openid
        self._clock = time.monotonic
        self._keys: Keys = {}
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str, algorithm: str) -> jwt.PyJWK | None:
        """The key with this id for this algorithm; None if there is none or keys are too old."""
        if (key_id, algorithm) not in self._keys or self._age() > FRESH:
            await self._refresh()
        if self._age() > BELIEVED:
            return None
        return self._keys.get((key_id, algorithm))

    async def find_only(self, algorithm: str) -> jwt.PyJWK | None:
        """The only key for this algorithm; None if there are several, none, or they are too old.

        OpenID Connect Core, section 10.1: an ID token names its key only if there are several.
        """
        if not self._keys or self._age() > FRESH:
            await self._refresh()
        keys = [key for (_, name), key in self._keys.items() if name == algorithm]
        return keys[0] if len(keys) == 1 and self._age() <= BELIEVED else None

    def _age(self) -> float:
        return self._clock() - self._fetched

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried within ``BETWEEN``. Callers share one fetch."""
        if self._fetching is None:
            if self._clock() - self._tried < BETWEEN:
                return
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
        # A caller who is cancelled must not cancel the fetch that others wait for.
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            # Keys are fetched and parsed in a thread: the provider decides on their sizes and so on
            # the time.
            self._keys = await asyncio.to_thread(self._keys_now)
            self._fetched = self._clock()
        except Exception as error:
            log.warning(
                "the keys of the identity provider were not fetched",
                error=type(error).__qualname__,
            )
        finally:
            self._fetching = None

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
        return None  # The other types are shared secrets, with which a verifier could also sign.
    public = {name: value for name, value in key.items() if name != "d"}
    try:
        return jwt.PyJWK(public, algorithm)
    except Exception:
        return None  # The library cannot read this key, so the key is left out.


def fetched(url: str) -> dict[str, Any]:
    """The JSON object at ``url``, without redirection, in bounded time and size."""
    end = time.monotonic() + PATIENCE
    content = bytearray()
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    with (
        httpx.Client(timeout=PATIENCE, follow_redirects=False, trust_env=False) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        if reply.status_code != 200:
            raise Unfetched
        for chunk in reply.iter_raw():
            content += chunk
            if len(content) > LARGEST_REPLY or time.monotonic() > end:
                raise Unfetched
    value = json.loads(content)
    if not isinstance(value, dict):
        raise Unfetched
    return value
