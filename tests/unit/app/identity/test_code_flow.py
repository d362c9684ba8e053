"""What strangers can make the code flow ask of a provider, and of whom it keeps nobody away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from app.config.openid import OpenID, OpenIDClient
from app.identity import code_flow
from app.identity.code_flow import (
    EXCHANGES,
    EXCHANGES_OF_ONE,
    CodeFlow,
    ProviderAway,
    SignInRefused,
    _derived,
)
from app.identity.published import BELIEVED, BETWEEN, FRESH
from app.identity.tokens import Tokens

ISSUER = "https://provider.example"
DESCRIPTION = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
}


class Provider:
    """Its description, how often that was read, and a clock."""

    def __init__(self) -> None:
        self.description: dict[str, Any] | None = DESCRIPTION
        self.reads, self.now = 0, 10.0**6

    def read(self, _url: str) -> dict[str, Any]:
        self.reads += 1
        if self.description is None:
            raise OSError
        return self.description

    def clock(self) -> float:
        return self.now


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider()
    monkeypatch.setattr(code_flow, "fetched", provider.read)
    return provider


@pytest.fixture
def flow(provider: Provider) -> CodeFlow:
    client = OpenIDClient("dashboard", "secret", "https://purse.example")
    openid = OpenID(ISSUER, "purse", None, ("RS256",), "roles", {}, client)
    flow = CodeFlow(openid, client, cast(Tokens, None))
    flow._endpoints._clock = provider.clock
    return flow


def test_a_provider_is_read_once_a_minute_and_believed_for_an_hour(
    provider: Provider, flow: CodeFlow
) -> None:
    async def ended(many: int = 20) -> set[type]:
        callers = (flow._addresses() for _ in range(many))
        return {type(one) for one in await asyncio.gather(*callers, return_exceptions=True)}

    async def play() -> None:
        provider.description = None
        assert await ended() == await ended() == {ProviderAway}
        assert provider.reads == 1
        provider.description, provider.now = DESCRIPTION, provider.now + BETWEEN
        assert await ended() == {code_flow.Endpoints}
        assert provider.reads == 2
        # The provider fails, or its description lacks the token endpoint. Its last valid
        # description stays in use for a time.
        for description in (None, DESCRIPTION | {"token_endpoint": None}):
            provider.description, provider.now = description, provider.now + FRESH + 1
            assert await ended() == await ended() == {code_flow.Endpoints}
        assert provider.reads == 4
        provider.now += BELIEVED
        assert await ended() == {ProviderAway}

    asyncio.run(play())


class Stuck:
    """A provider that says nothing about a code."""

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def fetch_token(self, *_: object, **__: object) -> Any:
        await asyncio.sleep(3600)


def returns(flow: CodeFlow) -> Callable[[str | None], Any]:
    """A return with a secret and a code that somebody has made up, from an address."""
    secret = "a" * 64
    sent = {"state": _derived(secret, "state"), "iss": ISSUER, "code": "x"}
    return lambda address: flow.claims(secret, sent, address)


def test_codes_of_one_address_keep_no_other_from_signing_in(
    flow: CodeFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> list[type]:
        back = returns(flow)
        addresses = ["10.0.0.1"] * 100 + ["10.0.0.2", "10.0.0.3"]
        ended = await asyncio.gather(*map(back, addresses), return_exceptions=True)
        return [type(error) for error in ended]

    monkeypatch.setattr(flow, "_http", Stuck)
    monkeypatch.setattr(code_flow, "PATIENCE", 2.0)
    ended = asyncio.run(play())
    assert ended[:100].count(ProviderAway) == 100 - EXCHANGES_OF_ONE
    # The codes from two other addresses reached the provider, although one address had sent 100.
    assert ended[100:] == [SignInRefused] * 2
    assert not flow._exchanges


def test_more_than_the_turns_wait_and_are_served(
    flow: CodeFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a proxy: eight exchanges at a time, and nobody is refused before waiting."""
    running, most = 0, 0

    class Slow(Stuck):
        async def fetch_token(self, *_: object, **__: object) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return {}

    async def play() -> set[type]:
        back = returns(flow)
        ended = await asyncio.gather(*(back(None) for _ in range(50)), return_exceptions=True)
        return {type(error) for error in ended}

    monkeypatch.setattr(flow, "_http", Slow)
    assert asyncio.run(play()) == {SignInRefused}
    assert most == EXCHANGES
