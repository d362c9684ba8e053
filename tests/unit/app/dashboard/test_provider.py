"""Signing in at the dashboard by a real OpenID provider: the code flow, and attacks on it."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr, ValidationError
from sqlalchemy import select, update

from app.config.settings import Settings
from app.dashboard.sessions import COOKIE, DEPARTURE
from app.main import create_app
from storage.database import tables
from tests.support.browser import HOME, Browser, words
from tests.support.openid import CLIENT, OpenIDServer
from tests.support.patience import PATIENCE
from tests.support.provider import AUDIENCE
from tests.support.service import Service, settings_on

PROVIDER, RETURN = "/ui/sign-in/provider", "/ui/sign-in/return"


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIDServer]:
    with OpenIDServer() as provider:
        yield provider


@pytest.fixture(scope="module")
def service(
    running: OpenIDServer,
    begun: tuple[Path, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    """One service for all tests; each signs in somebody else."""
    settings = settings_on(tmp_path_factory.mktemp("provider") / "data").model_copy(
        update={
            "oidc_issuer": running.issuer,
            "oidc_audience": AUDIENCE,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SecretStr("of the dashboard"),
            "public_url": HOME,
        }
    )
    shutil.copytree(begun[0], settings.data)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        service = Service(client, settings)
        service.keys = dict(begun[1])
        yield service


@pytest.fixture
def provider(running: OpenIDServer, service: Service) -> OpenIDServer:
    """The provider with all its checks, and a service that has not read its description yet."""
    running.reset()
    forget(service)
    return running


def forget(service: Service) -> None:
    """Read the description of the provider again, as after an hour."""
    never = dict.fromkeys(("_fetched", "_tried"), float("-inf"))
    flow = service.client.app.state.services.code_flow  # type: ignore[attr-defined]
    vars(flow._endpoints).update(never)


def depart(browser: Browser, next: str = "") -> str:
    """The address of the provider to which the browser is sent."""
    reply = browser.client.get(PROVIDER, params={"next": next} if next else None)
    assert reply.status_code == 303, reply.text
    return str(reply.headers["location"])


def come_back(browser: Browser, address: str, **changes: Any) -> httpx.Response:
    """The reply to the browser that the provider sends back; None omits a parameter."""
    place = urlsplit(address)
    assert f"{place.scheme}://{place.netloc}{place.path}" == HOME + RETURN
    sent = {name: values[0] for name, values in parse_qs(place.query).items()} | changes
    return browser.client.get(RETURN, params={k: v for k, v in sent.items() if v is not None})


def signed_in(service: Service, provider: OpenIDServer, subject: str) -> Browser:
    browser = Browser(service, None)
    reply = come_back(browser, provider.sign_in(depart(browser), subject))
    assert reply.status_code == 200, reply.text
    return browser


def refused(reply: httpx.Response) -> bool:
    session = [one for one in reply.headers.get_list("set-cookie") if one.startswith(f"{COOKIE}=")]
    return (reply.status_code, session) == (422, [])


def test_a_person_signs_in_renews_and_logs_out(service: Service, provider: OpenIDServer) -> None:
    provider.user("pia", "analyst")
    browser = Browser(service, None)
    page = browser.get("/ui/budgets").text
    (link,) = re.findall(r'href="(/ui/sign-in/provider[^"]*)"', page)
    assert link == "/ui/sign-in/provider?next=/ui/budgets"
    address = depart(browser, "/ui/budgets")
    request = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert request["redirect_uri"] == HOME + RETURN
    assert (request["code_challenge_method"], len(request["code_challenge"])) == ("S256", 43)
    assert (request["response_type"], request["scope"]) == ("code", "openid")
    reply = come_back(browser, provider.sign_in(address, "pia"))
    assert "url=/ui/budgets" in reply.text
    session, departure = reply.headers.get_list("set-cookie")
    assert {"secure", "httponly", "samesite=strict"} <= {
        part.strip().lower() for part in session.split(";")
    }
    assert departure.startswith(f'{COOKIE}{DEPARTURE}=""')
    assert "pia." in browser.text("/ui/budgets")

    # A session ends with the token of the provider, here in an hour, although the setting
    # session_lifetime is longer.
    database = service.client.app.state.services.database  # type: ignore[attr-defined]
    ends = select(tables.web_session.c.expires_us)
    with database.read() as connection:
        (end,) = connection.execute(ends).scalars()
    assert end <= (time.time() + 3600) * 1e6
    assert service.settings.session_lifetime > 3600
    database.write(lambda c: c.execute(update(tables.web_session).values(expires_us=1)))
    assert "Sign in" in browser.text("/ui/budgets")
    come_back(browser, provider.sign_in(depart(browser), "pia"))
    assert "pia." in browser.text("/ui/budgets")

    stolen = browser.client.cookies.get(COOKIE)
    assert browser.post("/ui/sign-out").headers["location"] == "/ui/sign-in"
    browser.client.cookies.set(COOKIE, str(stolen))
    assert browser.client.get("/ui/budgets").status_code == 303
    place = browser.client.get("/ui/sign-in/leave").headers["location"]
    assert place.startswith(f"{provider.issuer}/oauth2/end_session?client_id={CLIENT}")
    assert httpx.get(place, timeout=PATIENCE).is_success


def grow_old(service: Service) -> None:
    """Make the stored tokens ten seconds older, because tokens state whole seconds."""
    older = update(tables.identity).values(issued_s=tables.identity.c.issued_s - 10)
    service.client.app.state.services.database.write(  # type: ignore[attr-defined]
        lambda connection: connection.execute(older)
    )


def test_a_role_that_is_taken_away_is_gone_in_every_session(
    service: Service, provider: OpenIDServer
) -> None:
    provider.user("rob", "analyst", "owner")
    first = signed_in(service, provider, "rob")
    assert "Register" in first.text("/ui/datasets")
    grow_old(service)
    provider.user("rob", "analyst")
    second = signed_in(service, provider, "rob")
    for browser in (first, second):
        assert browser.client.get("/ui/register").status_code == 403
        assert browser.client.get("/ui/budgets").status_code == 200
    grow_old(service)
    provider.user("rob")
    browser = Browser(service, None)
    assert refused(come_back(browser, provider.sign_in(depart(browser), "rob")))
    assert first.client.get("/ui/budgets").status_code == 403


def test_a_disabled_person_is_out(service: Service, provider: OpenIDServer) -> None:
    provider.user("dora", "analyst")
    browser = signed_in(service, provider, "dora")
    name = re.search(r"dora\.[0-9a-f]+", browser.text("/ui/budgets"))
    assert name is not None
    path = f"/v1/users/{name[0]}"
    assert service("ada", "PATCH", path, json={"disabled": True}).status_code == 200
    assert browser.client.get("/ui/budgets").status_code == 303
    again = Browser(service, None)
    assert refused(come_back(again, provider.sign_in(depart(again), "dora")))
    assert service("ada", "POST", f"{path}/keys").status_code == 409


def test_a_return_counts_for_its_own_browser_alone(
    service: Service, provider: OpenIDServer
) -> None:
    provider.user("vic", "analyst")
    victim, attacker = Browser(service, None), Browser(service, None)
    address = provider.sign_in(depart(attacker), "vic")
    # Danger: an attacker could sign a victim in to a foreign account. So a return is refused unless
    # this browser began the sign-in and sends the state of it.
    assert refused(come_back(victim, address))
    depart(victim)
    for changes in ({}, {"state": None}, {"state": ""}, {"state": "é"}, {"state": "0" * 64}):
        assert refused(come_back(victim, address, **changes))
        depart(victim)
    assert provider.exchanges == []
    repeated = urlsplit(address).query + "&" + urlencode({"state": "x"})
    assert refused(attacker.client.get(f"{RETURN}?{repeated}"))


def test_a_code_of_another_browser_is_refused(service: Service, provider: OpenIDServer) -> None:
    """PKCE refuses it at the provider; at one that does not check, the nonce refuses it here."""
    provider.user("eve", "analyst")
    for checks in (True, False):
        provider.checks_pkce = checks
        attacker, victim = Browser(service, None), Browser(service, None)
        stolen = parse_qs(urlsplit(provider.sign_in(depart(attacker), "eve")).query)["code"][0]
        own = provider.sign_in(depart(victim), "eve")
        assert refused(come_back(victim, own, code=stolen))
        assert len(provider.exchanges[-1]["code_verifier"]) == 64


def test_a_return_of_another_provider_is_refused(service: Service, provider: OpenIDServer) -> None:
    provider.user("max", "analyst")
    for issuer in ("https://evil.example", f"{provider.issuer}/", "", None):
        browser = Browser(service, None)
        address = provider.sign_in(depart(browser), "max")
        assert refused(come_back(browser, address, iss=issuer)), issuer
    assert provider.exchanges == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"code_challenge_methods_supported": ["plain"]},
        {"code_challenge_methods_supported": []},
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"token_endpoint": None},
    ],
)
def test_a_provider_that_offers_less_is_not_used(
    service: Service, provider: OpenIDServer, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    assert Browser(service, None).client.get(PROVIDER).status_code == 503


def test_a_return_counts_once(service: Service, provider: OpenIDServer) -> None:
    provider.user("rae", "analyst")
    browser = Browser(service, None)
    address = provider.sign_in(depart(browser), "rae")
    departure = browser.client.cookies.get(COOKIE + DEPARTURE)
    assert come_back(browser, address).status_code == 200
    assert refused(come_back(browser, address))
    browser.client.cookies.set(COOKIE + DEPARTURE, str(departure))
    assert refused(come_back(browser, address))
    assert len(provider.exchanges) == 2


def test_what_the_provider_refuses_opens_nothing(service: Service, provider: OpenIDServer) -> None:
    browser = Browser(service, None)
    state = parse_qs(urlsplit(depart(browser)).query)["state"][0]
    denied = {"state": state, "iss": provider.issuer, "error": "access_denied", "code": "x"}
    reply = browser.client.get(RETURN, params=denied)
    assert refused(reply)
    assert "did not sign you in" in words(reply.text)
    assert provider.exchanges == []


@pytest.mark.parametrize("next", ["https://evil.example", "//evil.example", "/ui\\evil", "/v1/me"])
def test_coming_back_leads_nowhere_else(
    service: Service, provider: OpenIDServer, next: str
) -> None:
    provider.user("nia", "analyst")
    browser = Browser(service, None)
    reply = come_back(browser, provider.sign_in(depart(browser, next), "nia"))
    assert re.findall(r'url=([^"]+)"', reply.text) == ["/ui"]


@pytest.mark.parametrize(
    "settings",
    [
        {"public_url": "http://purse.example"},
        {"public_url": "https://purse.example/ui"},
        {"public_url": "https://a@purse.example"},
        {"oidc_client_id": "dashboard"},
        {"oidc_client_secret": "secret"},
    ],
)
def test_settings_that_are_none(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)
