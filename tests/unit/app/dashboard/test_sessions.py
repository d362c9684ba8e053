"""Signing in and out; a cookie is valid for pages and forms only, not for the API."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.dashboard.pages import UploadPage
from app.dashboard.sessions import COOKIE, LOOPBACK_COOKIE
from app.http.openapi import routes_of
from tests.support.browser import HOME, Browser, SignIn, words
from tests.support.service import Service


def test_a_key_becomes_a_session_cookie_that_is_only_sent_back(
    people: Service, sign_in: SignIn
) -> None:
    browser = sign_in(None)
    reply = browser.post("/ui/sign-in", key=f"  {people.keys['ana']} ")
    assert (reply.status_code, reply.headers["location"]) == (303, "/ui")
    cookie = reply.headers["set-cookie"]
    assert re.match(rf"{COOKIE}=[0-9a-f]{{64}};", cookie)
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"secure", "httponly", "samesite=strict", "path=/"}
    assert people.keys["ana"] not in cookie
    assert "ana" in words(browser.get("/ui").text)


@pytest.mark.parametrize("key", ["", "pp_x", "é", "a" * 5000, "pp_" + "0" * 16 + "_" + "0" * 64])
def test_what_is_no_key_opens_nothing(sign_in: SignIn, key: str) -> None:
    reply = sign_in(None).post("/ui/sign-in", key=key)
    assert reply.status_code == 422
    assert "set-cookie" not in reply.headers
    assert "This key opens nothing" in reply.text
    assert not key or key not in reply.text


def test_signing_in_leads_back_to_the_page_that_was_asked_for(
    people: Service, sign_in: SignIn
) -> None:
    browser = sign_in(None)
    reply = browser.client.get("/ui/keys?x=1")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/ui/sign-in?next=%2Fui%2Fkeys%3Fx%3D1"
    page = browser.get("/ui/keys?x=1").text
    assert 'name="next" value="/ui/keys?x=1"' in page
    reply = browser.post("/ui/sign-in", key=people.keys["ana"], next="/ui/keys?x=1")
    assert reply.headers["location"] == "/ui/keys?x=1"


@pytest.mark.parametrize(
    "next",
    ["https://evil.example", "//evil.example", "/ui\\evil", "/v1/me", "/uix", "/ui/\r\nX: y", "é"],
)
def test_signing_in_leads_nowhere_else(people: Service, sign_in: SignIn, next: str) -> None:
    reply = sign_in(None).post("/ui/sign-in", key=people.keys["ana"], next=next)
    assert reply.headers["location"] == "/ui"


def test_signing_out_ends_the_session_at_the_service(sign_in: SignIn) -> None:
    browser = sign_in("ana")
    stolen = browser.client.cookies.get(COOKIE)
    reply = browser.post("/ui/sign-out")
    assert (reply.status_code, reply.headers["location"]) == (303, "/ui/sign-in")
    assert browser.client.cookies.get(COOKIE) is None
    browser.client.cookies.set(COOKIE, str(stolen))
    assert browser.client.get("/ui/keys").status_code == 303


def test_a_revoked_key_and_a_disabled_user_end_the_session(
    people: Service, sign_in: SignIn
) -> None:
    ana, otto = sign_in("ana"), sign_in("otto")
    key_id = people.keys["ana"].split("_")[1]
    people("root", "DELETE", f"/v1/keys/{key_id}")
    people("root", "PATCH", "/v1/users/otto", json={"disabled": True})
    for browser in (ana, otto):
        assert browser.client.get("/ui/keys").status_code == 303
    people("root", "PATCH", "/v1/users/otto", json={"disabled": False})
    assert otto.client.get("/ui/keys").status_code == 303


def test_no_route_of_the_api_takes_a_cookie(application: FastAPI, sign_in: SignIn) -> None:
    browser = sign_in("root")
    tried = 0
    for route in routes_of(application):
        if not route.path.startswith("/v1"):
            continue
        for method in route.methods or ():
            names = dict.fromkeys(route.param_convertors, "absent")
            reply = browser.client.request(
                method, route.path.format(**names), headers={"Origin": HOME}
            )
            assert reply.status_code == 401, (method, route.path)
            tried += 1
    assert tried > 20


def test_pages_take_no_key(people: Service, sign_in: SignIn) -> None:
    headers = {"Authorization": f"Bearer {people.keys['ana']}"}
    assert sign_in(None).client.get("/ui/keys", headers=headers).status_code == 303


class TestForms:
    """A form that changes state is refused unless it comes from a page of the session."""

    @pytest.mark.parametrize(
        "origin",
        ["https://evil.example", "null", "", "http://purse.example", "https://purse.example.evil",
         "https://purse.example:444", "purse.example", "ftp://purse.example"],
    )  # fmt: skip
    def test_from_elsewhere(self, sign_in: SignIn, people: Service, origin: str) -> None:
        browser = sign_in("ana")
        before = people("ana", "GET", "/v1/users/ana/keys").json()
        for path in ("/ui/keys", "/ui/sign-out", "/ui/sign-in"):
            reply = browser.post(path, headers={"Origin": origin}, key=people.keys["ana"])
            assert reply.status_code == 403, path
            assert "Not from this page" in reply.text
            assert "set-cookie" not in reply.headers
        assert people("ana", "GET", "/v1/users/ana/keys").json() == before
        assert browser.client.get("/ui/keys").status_code == 200

    def test_without_an_origin(self, sign_in: SignIn) -> None:
        browser = sign_in("ana")
        reply = browser.client.post("/ui/keys", data={"csrf": browser.csrf})
        assert reply.status_code == 403

    def test_with_the_token_of_another_session(self, sign_in: SignIn, people: Service) -> None:
        browser, other = sign_in("ana"), sign_in("ana")
        assert browser.csrf != other.csrf
        before = people("ana", "GET", "/v1/users/ana/keys").json()
        for token in (other.csrf, "", "x", "é", browser.csrf[:-1]):
            assert browser.post("/ui/keys", csrf=token).status_code == 403
        assert people("ana", "GET", "/v1/users/ana/keys").json() == before
        assert browser.post("/ui/keys").status_code == 200

    def test_by_every_form_there_is(self, application: FastAPI, sign_in: SignIn) -> None:
        """Sends a form to every route with POST, so that new forms are included."""
        for who in ("ada", "olga", "ana", "otto"):
            browser = sign_in(who)
            for route in routes_of(application):
                if not route.path.startswith("/ui") or "POST" not in (route.methods or ()):
                    continue
                path = route.path.format(**dict.fromkeys(route.param_convertors, "absent"))
                if isinstance(route, UploadPage):
                    file = {"file": ("x.csv", b"a")}
                    reply = browser.post(path, csrf="wrong", files=file)
                    assert reply.status_code == 403, path
                elif not route.access.public:
                    reply = browser.post(path, csrf="wrong")
                    assert reply.status_code == 403, path
                reply = browser.post(path, headers={"Origin": "https://evil.example"})
                assert reply.status_code == 403, path

    def test_of_another_type(self, sign_in: SignIn) -> None:
        browser = sign_in("ana")
        reply = browser.client.post("/ui/keys", json={}, headers={"Origin": HOME})
        assert reply.status_code == 415

    @pytest.mark.parametrize("body", [b"\xff", b"csrf=%ff", b"&".join([b"a=1"] * 10_001), b"k=%00"])
    def test_that_no_browser_sends(self, sign_in: SignIn, body: bytes) -> None:
        browser = sign_in("ana")
        headers = {"Origin": HOME, "Content-Type": "application/x-www-form-urlencoded"}
        reply = browser.client.post("/ui/keys", content=body, headers=headers)
        assert reply.status_code == 422


class TestPlainHttp:
    """Without TLS only a browser on this machine can sign in, with another cookie name."""

    def sign_in(self, application: FastAPI, key: str, base: str) -> TestClient:
        browser = TestClient(application, base_url=base, follow_redirects=False)
        self.reply = browser.post("/ui/sign-in", data={"key": key}, headers={"Origin": base})
        return browser

    @pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
    def test_on_this_machine(self, people: Service, application: FastAPI, host: str) -> None:
        browser = self.sign_in(application, people.keys["ana"], f"http://{host}")
        assert self.reply.status_code == 303
        cookie = self.reply.headers["set-cookie"]
        assert cookie.startswith(f"{LOOPBACK_COOKIE}=")
        assert "secure" not in cookie.lower()
        assert "httponly" in cookie.lower()
        token = cookie.partition("=")[2].partition(";")[0]
        headers = {"Cookie": f"{LOOPBACK_COOKIE}={token}"}
        assert browser.get("/ui/keys", headers=headers).status_code == 200
        # A session cookie for this machine is not accepted over any other address.
        for base in (HOME, "http://purse.example", f"https://{host}"):
            other = TestClient(application, base_url=base, follow_redirects=False)
            assert other.get("/ui/keys", headers=headers).status_code == 303

    @pytest.mark.parametrize(
        "host", ["purse.example", "10.0.0.5:8000", "localhost.example", "127.0.0.1.example"]
    )
    def test_elsewhere(self, people: Service, application: FastAPI, host: str) -> None:
        self.sign_in(application, people.keys["ana"], f"http://{host}")
        assert self.reply.status_code == 403
        assert "set-cookie" not in self.reply.headers

    def test_behind_a_proxy_that_hides_the_name(
        self, people: Service, application: FastAPI
    ) -> None:
        """Without the public name in Host the service refuses every form, so nobody can sign in."""
        browser = TestClient(application, base_url="http://127.0.0.1:8000", follow_redirects=False)
        sent = {"key": people.keys["ana"]}
        reply = browser.post("/ui/sign-in", data=sent, headers={"Origin": HOME})
        assert (reply.status_code, "set-cookie" in reply.headers) == (403, False)

    def test_behind_a_proxy_that_ends_tls(self, people: Service, application: FastAPI) -> None:
        """The service receives plain HTTP from this machine; Origin has the real address."""
        browser = TestClient(application, base_url="http://purse.example", follow_redirects=False)
        sent = {"key": people.keys["ana"]}
        reply = browser.post("/ui/sign-in", data=sent, headers={"Origin": HOME})
        assert reply.status_code == 303
        assert reply.headers["set-cookie"].startswith(f"{COOKIE}=")
        assert "; secure" in reply.headers["set-cookie"].lower()


def test_a_part_of_a_page_sends_the_whole_page_to_the_entrance(sign_in: SignIn) -> None:
    reply = sign_in(None).client.get("/ui/keys", headers={"HX-Request": "true"})
    assert reply.status_code == 401
    assert reply.headers["hx-redirect"] == "/ui/sign-in"


def test_what_is_not_there_is_a_page_too(sign_in: SignIn) -> None:
    for browser in (sign_in(None), sign_in("ana")):
        reply = browser.get("/ui/nothing")
        assert reply.status_code == 404
        assert reply.headers["content-type"].startswith("text/html")
        assert "Not found" in words(reply.text)


def test_an_unexpected_failure_is_one_fixed_page(
    people: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = sign_in("ana")

    def broken(_name: str) -> None:
        raise RuntimeError("secret record")

    monkeypatch.setattr(people.client.app.state.services.users, "keys", broken)  # type: ignore[attr-defined]
    reply = browser.get("/ui/keys")
    assert reply.status_code == 500
    assert "Internal error" in words(reply.text)
    assert "secret" not in reply.text


def test_a_new_key_is_shown_once_and_can_be_revoked(people: Service, sign_in: SignIn) -> None:
    browser = sign_in("ana")
    page = browser.post("/ui/keys").text
    key = re.search(r"pp_[0-9a-f]{16}_[0-9a-f]{64}", page)
    assert key is not None
    assert key[0] not in browser.get("/ui/keys").text
    people.keys["ana"] = key[0]
    assert people("ana", "GET", "/v1/me").status_code == 200
    browser.post(f"/ui/keys/{key[0].split('_')[1]}/revoke")
    assert people("ana", "GET", "/v1/me").status_code == 401
    assert "revoked" in browser.text("/ui/keys")


def test_a_key_of_somebody_else_is_not_there(people: Service, sign_in: SignIn) -> None:
    path = f"/ui/keys/{people.keys['otto'].split('_')[1]}/revoke"
    mine, absent = sign_in("ana").post(path), sign_in("ana").post("/ui/keys/absent/revoke")
    assert (mine.status_code, absent.status_code) == (404, 404)
    assert people("otto", "GET", "/v1/me").status_code == 200


def test_pages_are_strict_and_their_forms_say_where_they_come_from(sign_in: SignIn) -> None:
    for browser, path in ((sign_in(None), "/ui/sign-in"), (sign_in("ana"), "/ui/keys")):
        reply = browser.get(path)
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["cache-control"] == "no-store"
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", reply.text)
        assert not re.search(r"<script(?![^>]*\bsrc=)", reply.text)
        for link in re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', reply.text):
            assert browser.client.get(link, headers={"Accept": "*/*"}).status_code == 200, link


def test_signed_in_browsers_are_counted_like_keys(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(people, people.keys["ana"])
    counted: list[str] = []
    rate = people.client.app.state.services.rate  # type: ignore[attr-defined]
    monkeypatch.setattr(rate, "count", counted.append)
    browser.get("/ui/keys")
    assert counted == [people.keys["ana"].split("_")[1]]
