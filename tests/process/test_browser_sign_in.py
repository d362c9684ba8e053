"""Signing in at the dashboard in a real browser, at the page of a real OpenID provider."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from app.dashboard.sessions import DEPARTURE, LOOPBACK_COOKIE
from app.demo.service import ServiceProcess, free_port
from tests.process.windows import NEEDS_CHROMIUM, Chromium, Open, Window, chromium
from tests.support.openid import CLIENT, OpenIDServer
from tests.support.provider import AUDIENCE

pytestmark = NEEDS_CHROMIUM


@dataclass
class Site:
    """A running service, and the provider at which its dashboard signs people in."""

    url: str
    database: Path
    provider: OpenIDServer

    def store(self, statement: str) -> None:
        with sqlite3.connect(self.database, timeout=30) as connection:
            connection.execute(statement)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    data, port = tmp_path_factory.mktemp("site") / "data", free_port()
    with OpenIDServer() as provider:
        settings = {
            "PURSE_RELEASE_INTERVAL": "0",
            "PURSE_UPLOAD_WAIT": "300",
            "PURSE_OPENING_INTERVAL": "0",
            "PURSE_OIDC_ISSUER": provider.issuer,
            "PURSE_OIDC_AUDIENCE": AUDIENCE,
            "PURSE_OIDC_CLIENT_ID": CLIENT,
            "PURSE_OIDC_CLIENT_SECRET": "of the dashboard",
            "PURSE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        with ServiceProcess(data, port=port, **settings) as service:
            yield Site(service.url, data / "privypurse.db", provider)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Chromium, site: Site) -> Iterator[Open]:
    site.provider.reset()
    with browser.windows(site.url, site.provider.issuer) as opens:
        yield opens


def authorize(window: Window, subject: str) -> None:
    """From a page that asks to sign in, over the page of the provider, back to the service."""
    window.page.get_by_role("link", name="Sign in with your organization").click()
    agree(window, subject)


def agree(window: Window, subject: str) -> None:
    """On the page of the provider."""
    window.page.get_by_placeholder("sub").fill(subject)
    window.page.get_by_role("button", name="Authorize").click()


def cookies(window: Window) -> dict[str, Any]:
    return {one["name"]: one for one in window.page.context.cookies(window.url)}


def is_out(window: Window) -> bool:
    """Whether the window has no session, by its cookies and by a page."""
    window.go("/ui/budgets")
    offered = window.page.get_by_role("link", name="Sign in with your organization").count()
    return offered == 1 and LOOPBACK_COOKIE not in cookies(window)


def test_a_person_signs_in_renews_and_logs_out(opened: Open, site: Site) -> None:
    site.provider.user("pia", "analyst")
    window = opened()
    page = window.page
    with window.without_errors():
        # The browser requests an icon that the OpenID provider does not have, which would count as
        # an error.
        page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        window.go("/ui/queries")
        assert window.is_fit() == []
        authorize(window, "pia")
        page.wait_for_url(site.url + "/ui/queries")
        assert page.get_by_text("pia.").count() >= 1
        session = cookies(window)[LOOPBACK_COOKIE]
        assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
        assert not any(name.endswith(DEPARTURE) for name in cookies(window))

        # The session expires with the token of the OpenID provider; signing in again renews it.
        site.store("UPDATE web_session SET expires_us = 1")
        window.go("/ui/budgets")
        authorize(window, "pia")
        page.wait_for_url(site.url + "/ui/budgets")
        assert page.get_by_text("pia.").count() >= 1

        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("link", name="Sign out there").click()
        page.wait_for_url(lambda url: url.startswith(f"{site.provider.issuer}/oauth2/end_session"))
    assert is_out(window)


def test_a_role_that_is_taken_away_is_gone_in_every_window(opened: Open, site: Site) -> None:
    first, second = opened(), opened(375)
    for window, roles in ((first, ("analyst", "owner")), (second, ("analyst",))):
        site.provider.user("rob", *roles)
        window.go("/ui/datasets")
        authorize(window, "rob")
        window.page.wait_for_url(site.url + "/ui/datasets")
        assert window.page.get_by_role("link", name="Register").count() == len(roles) - 1
        # Tokens state their time in whole seconds. The stored time is set back, so that the next
        # token counts as newer.
        site.store("UPDATE identity SET issued_s = issued_s - 10")
    first.go("/ui/datasets")
    assert first.page.get_by_role("link", name="Register").count() == 0
    site.provider.user("rob")
    third = opened()
    third.go("/ui/budgets")
    authorize(third, "rob")
    third.page.get_by_text("Your provider did not sign you in here.").wait_for()
    assert is_out(third)


def returned(window: Window, subject: str) -> str:
    """The address to which the provider sends the browser back; the browser does not go there."""
    places: list[str] = []

    def keep(route: Any) -> None:
        places.append(route.fetch(max_redirects=0).headers["location"])
        route.fulfill(body="stopped")

    window.go("/ui/budgets")
    window.page.get_by_role("link", name="Sign in with your organization").click()
    window.page.route("**/oauth2/authorize?*", keep)
    agree(window, subject)
    window.page.get_by_text("stopped").wait_for()
    return places[0]


def changed(address: str, **changes: str) -> str:
    place = urlsplit(address)
    sent = {name: values[0] for name, values in parse_qs(place.query).items()} | changes
    return place._replace(query=urlencode(sent)).geturl()


@pytest.mark.parametrize(
    "changes", [{"state": "0" * 64}, {"iss": "https://evil.example"}, {"code": "stolen"}]
)
def test_a_return_that_was_changed_opens_nothing(
    opened: Open, site: Site, changes: dict[str, str]
) -> None:
    site.provider.user("vic", "analyst")
    window = opened()
    window.page.goto(changed(returned(window, "vic"), **changes))
    assert window.page.get_by_text("Your provider did not sign you in here.").count() == 1
    assert is_out(window)


def test_a_return_counts_once_and_for_its_own_browser_alone(opened: Open, site: Site) -> None:
    site.provider.user("mia", "analyst")
    window, victim = opened(), opened()
    address = returned(window, "mia")
    victim.go("/ui/sign-in/provider")
    victim.page.goto(address)
    assert is_out(victim)
    window.page.goto(address)
    window.page.wait_for_url(site.url + "/ui/budgets")
    window.page.goto(address)
    assert window.page.get_by_text("Your provider did not sign you in here.").count() == 1


@pytest.mark.parametrize("next", ["https://evil.example", "//evil.example", "/ui\\evil"])
def test_signing_in_leads_nowhere_else(opened: Open, site: Site, next: str) -> None:
    site.provider.user("nia", "analyst")
    window = opened()
    window.go("/ui/sign-in/provider?" + urlencode({"next": next}))
    agree(window, "nia")
    window.page.wait_for_url(site.url + "/ui/budgets")
    assert window.elsewhere == []
