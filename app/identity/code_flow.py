"""The code flow of OpenID Connect, with which a person signs in at the dashboard.

    begin ── browser → provider → browser ── claims

Danger: every parameter of the return comes from anybody. It counts only with the secret of the
same browser, from which state, nonce and code verifier (PKCE, S256) are derived. So a response for
another browser, another provider or another request opens no session. Authlib builds the requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex
from typing import Any

from app.config.openid import OpenID, OpenIDClient, is_safe
from app.config.trust import trusted
from app.identity.published import PATIENCE, Published, fetched
from app.identity.tokens import Claims, Tokens

#: The most exchanges of sign-in codes at the same time. Others wait for a free slot, for at most
#: ``PATIENCE`` seconds.
EXCHANGES = 8
#: The most exchanges of one client address, running and waiting. Danger: anybody may send made-up
#: codes, and could otherwise occupy all slots. Clients behind a proxy share one address, so this
#: limit does not apply to them.
EXCHANGES_OF_ONE = 2
SCOPE = "openid"


class SignInRefused(Exception):
    """A return that signs nobody in. The text is for the log, and holds no parameter."""


class ProviderAway(Exception):
    """The provider does not say where it is, or too many people sign in now."""


@dataclass(frozen=True)
class Endpoints:
    """The provider's addresses. ``states_issuer``: its returns always name the issuer."""

    authorization: str
    token: str
    end_session: str | None
    states_issuer: bool


@dataclass(frozen=True)
class Departure:
    """Where a browser goes to sign in, and the secret with which it comes back."""

    address: str
    secret: str


class CodeFlow:
    """The code flow with one provider. An instance belongs to one event loop."""

    def __init__(self, openid: OpenID, client: OpenIDClient, tokens: Tokens) -> None:
        self._openid, self._client, self._tokens = openid, client, tokens
        self._endpoints = Published("endpoints", self._described)
        self._turns = asyncio.Semaphore(EXCHANGES)
        self._exchanges: Counter[str] = Counter()

    async def begin(self) -> Departure:
        """A new request to sign in. Raises: ProviderAway."""
        endpoints, secret = await self._addresses(), token_hex(32)
        async with self._http() as http:
            address, _ = http.create_authorization_url(
                endpoints.authorization,
                state=_derived(secret, "state"),
                nonce=_derived(secret, "nonce"),
                code_verifier=_derived(secret, "verifier"),
            )
        return Departure(str(address), secret)

    async def claims(
        self, secret: str, returned: Mapping[str, str], address: str | None = None
    ) -> Claims:
        """The claims of the person who comes back with these parameters.

        ``address``: the client, or None if clients share an address. Raises: SignInRefused,
        ProviderAway.
        """
        state = returned.get("state", "")
        if not secret or not compare_digest(state.encode(), _derived(secret, "state").encode()):
            raise SignInRefused("state")
        endpoints = await self._addresses()
        # RFC 9207: refuses the reply of another provider, whose code must not be sent to this
        # provider's token endpoint.
        issuer = returned.get("iss")
        if issuer != self._openid.issuer and (issuer is not None or endpoints.states_issuer):
            raise SignInRefused("issuer")
        code = returned.get("code")
        if "error" in returned or not code:
            raise SignInRefused("no code")
        with self._one_of(address):
            token = await self._exchange(endpoints, code, _derived(secret, "verifier"))
        claims = await self._tokens.verified_id_token(
            token, self._client.id, _derived(secret, "nonce")
        )
        if claims is None:
            raise SignInRefused("token")
        return claims

    async def leaving(self) -> str | None:
        """The address at which a person ends the session with the provider; None without one."""
        end_session = (await self._addresses()).end_session
        if end_session is None:
            return None
        from authlib.common.urls import add_params_to_uri

        params = [("client_id", self._client.id)]
        params.append(("post_logout_redirect_uri", self._client.sign_in_page))
        return str(add_params_to_uri(end_session, params))

    @contextmanager
    def _one_of(self, address: str | None) -> Iterator[None]:
        """Count an exchange of this client. Raises: ProviderAway if it has too many."""
        if address is None:
            yield
            return
        if self._exchanges[address] >= EXCHANGES_OF_ONE:
            raise ProviderAway
        self._exchanges[address] += 1
        try:
            yield
        finally:
            self._exchanges[address] -= 1
            # Drops the client addresses that exchange no sign-in code any more.
            self._exchanges += Counter()

    async def _exchange(self, endpoints: Endpoints, code: str, verifier: str) -> str:
        """The ID token for a code, which the provider gives once.

        Raises: SignInRefused; ProviderAway if others keep it waiting.
        """
        try:
            await asyncio.wait_for(self._turns.acquire(), PATIENCE)
        except TimeoutError:
            raise ProviderAway from None
        try:
            async with self._http() as http, asyncio.timeout(PATIENCE):
                reply = await http.fetch_token(
                    endpoints.token,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                )
        except Exception as error:
            # Only the class of the exception is kept, because its text may contain the provider's
            # reply.
            raise SignInRefused(type(error).__qualname__) from None
        finally:
            self._turns.release()
        token = reply.get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("no ID token")
        return token

    def _http(self) -> Any:
        # The library is imported here, because it takes an eighth of a second to load and only
        # people who sign in need it.
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        return AsyncOAuth2Client(
            self._client.id,
            self._client.secret,
            scope=SCOPE,
            redirect_uri=self._client.redirect_uri,
            code_challenge_method="S256",
            timeout=PATIENCE,
            follow_redirects=False,
            trust_env=False,
            verify=trusted(),
        )

    async def _addresses(self) -> Endpoints:
        """The endpoints. Raises: ProviderAway."""
        endpoints = await self._endpoints.get()
        if endpoints is None:
            raise ProviderAway
        return endpoints

    def _described(self) -> Endpoints:
        issuer = self._openid.issuer
        metadata = fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        methods = metadata.get("code_challenge_methods_supported", ["S256"])
        # Refuses a provider that does not support S256, the hash of PKCE. Without it, a thief of
        # the code could use the code.
        if metadata.get("issuer") != issuer or "S256" not in methods:
            raise ProviderAway
        names = ("authorization_endpoint", "token_endpoint", "end_session_endpoint")
        authorization, token, end_session = (metadata.get(name) for name in names)
        if not (_is_address(authorization) and _is_address(token)):
            raise ProviderAway
        return Endpoints(
            str(authorization),
            str(token),
            str(end_session) if _is_address(end_session) else None,
            metadata.get("authorization_response_iss_parameter_supported") is True,
        )


def _is_address(value: object) -> bool:
    return isinstance(value, str) and is_safe(value)


def _derived(secret: str, purpose: str) -> str:
    """A value that follows from the secret, and reveals neither it nor the other values."""
    return sha256(f"{purpose} of {secret}".encode()).hexdigest()
