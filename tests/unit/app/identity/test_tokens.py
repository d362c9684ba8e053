"""Tokens of an OpenID provider: valid ones identify users, all others get one same refusal."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError
from structlog.testing import capture_logs

from app.config.settings import Settings
from app.identity import published
from app.main import create_app
from tests.support.provider import AUDIENCE, PRIVATE, STRANGER, Provider, public
from tests.support.service import Service
from tests.unit.app.http.test_access import CONTRACT

Forge = Callable[[Provider], str]


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def settings(settings: Settings, provider: Provider) -> Settings:
    return settings.model_copy(
        update={
            "oidc_issuer": provider.issuer,
            "oidc_audience": AUDIENCE,
            "oidc_algorithms": ("RS256", "ES256", "EdDSA"),
        }
    )


def me(service: Service, token: str, path: str = "/v1/me", **sent: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return service.client.request(sent.pop("method", "GET"), path, headers=headers, **sent)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def pem(algorithm: str) -> bytes:
    return (
        PRIVATE[algorithm]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def hmac_token(provider: Provider, secret: bytes, algorithm: str = "HS256") -> str:
    """Like jwt.encode, which refuses to use a public key as the secret."""
    head = part({"alg": algorithm, "kid": "rs256", "typ": "JWT"})
    signed = f"{head}.{part(provider.claims())}"
    mac = hmac.new(secret, signed.encode(), "sha256").digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def without_signature(provider: Provider, **header: Any) -> str:
    return f"{part(header)}.{part(provider.claims())}."


def now() -> int:
    return int(time.time())


#: Invalid tokens of attackers and broken providers. Each differs in one point from a valid token.
FORGED: dict[str, Forge] = {
    "none": lambda p: without_signature(p, alg="none", kid="rs256"),
    "none with a signature": lambda p: without_signature(p, alg="none", kid="rs256") + "AAAA",
    "None": lambda p: without_signature(p, alg="nOnE", kid="rs256") + "AAAA",
    "HS256 with the public key": lambda p: hmac_token(p, pem("RS256")),
    "HS256 with the published key": lambda p: hmac_token(p, json.dumps(public("RS256")).encode()),
    "HMAC called RS256": lambda p: hmac_token(p, pem("RS256"), "RS256"),
    "another key": lambda p: p.token(key=STRANGER),
    "the key of another id": lambda p: p.token(header={"kid": "es256"}),
    "an algorithm that is not on the list": lambda p: p.token(
        "PS256", PRIVATE["RS256"], {"kid": "rs256"}
    ),
    "RS512 by the right key": lambda p: p.token("RS512", PRIVATE["RS256"], {"kid": "rs256"}),
    "an unknown key": lambda p: p.token(header={"kid": "unknown"}),
    "no key id": lambda p: jwt.encode(p.claims(), PRIVATE["RS256"], "RS256"),
    "a key id that is none": lambda _: f"{part({'alg': 'RS256', 'kid': [1]})}.{part({})}.AAAA",
    "algorithms": lambda _: f"{part({'alg': ['RS256'], 'kid': 'rs256'})}.{part({})}.AAAA",
    "wrong issuer": lambda p: p.token(iss="https://evil.example"),
    "longer issuer": lambda p: p.token(iss=p.issuer + "/"),
    "issuers": lambda p: p.token(iss=[p.issuer]),
    "wrong audience": lambda p: p.token(aud="https://other.example"),
    "longer audience": lambda p: p.token(aud=AUDIENCE + ".evil"),
    "other audiences": lambda p: p.token(aud=["a", "b"]),
    "expired": lambda p: p.token(exp=now() - 60),
    "not yet valid": lambda p: p.token(nbf=now() + 300),
    "issued in the future": lambda p: p.token(iat=now() + 300),
    "issued before 1970": lambda p: p.token(iat=-1),
    "expiry in words": lambda p: p.token(exp="tomorrow"),
    "an endless expiry": lambda p: p.token(exp=float("nan")),
    **{
        f"no {claim}": lambda p, claim=claim: p.token(**{claim: None})  # type: ignore[misc]
        for claim in ("iss", "aud", "exp", "iat", "sub", "roles")
    },
    "empty subject": lambda p: p.token(sub=""),
    "long subject": lambda p: p.token(sub="a" * 256),
    "a subject with a zero": lambda p: p.token(sub="a\0b"),
    "a subject of another script": lambda p: p.token(sub="аna"),
    "roles as an object": lambda p: p.token(roles={"privypurse-analyst": True}),
    "roles as a number": lambda p: p.token(roles=7),
    "an extension": lambda p: p.token(header={"crit": ["exp"], "exp": now() + 60}),
    "an unknown extension": lambda p: p.token(header={"crit": ["http://x"], "http://x": 1}),
    "an empty list of extensions": lambda p: p.token(header={"crit": []}),
    "a logout token": lambda p: p.token(header={"typ": "logout+jwt"}),
    "a proof": lambda p: p.token(header={"typ": "dpop+jwt"}),
    "a type that is none": lambda p: p.token(header={"typ": ["at+jwt"]}),
    "jku": lambda p: p.token(key=STRANGER, header={"kid": "evil", "jku": f"{p.issuer}/evil"}),
    "jku with a known id": lambda p: p.token(key=STRANGER, header={"jku": f"{p.issuer}/evil"}),
    "x5u": lambda p: p.token(key=STRANGER, header={"x5u": f"{p.issuer}/evil"}),
    "jwk": lambda p: p.token(key=STRANGER, header={"jwk": public("RS256", STRANGER)}),
    "a detached payload": lambda p: p.token(header={"b64": False}),
    "other claims": lambda p: changed(p.token(), 1, p.claims(sub="admin")),
    "another header": lambda p: changed(p.token(), 0, {"alg": "RS256", "kid": "rs256", "x": 1}),
    "no claims": lambda p: changed(p.token(), 1, []),
    "depth": lambda _: f"{part('[' * 6000)}.{part({})}.AAAA",
    "a deep header": lambda _: base64.urlsafe_b64encode(b"[" * 9000).decode() + ".AAAA.AAAA",
    "two parts": lambda p: p.token().rpartition(".")[0],
    "four parts": lambda p: p.token() + ".AAAA",
    "huge": lambda p: p.token(more="x" * 20_000),
    "very huge": lambda p: p.token(more="x" * 1_000_000),
    "dots": lambda _: "..",
    "no base64": lambda _: "a.b.c",
    "a key with dots": lambda _: "pp_0.0.0",
}


def changed(token: str, index: int, value: object) -> str:
    parts = token.split(".")
    parts[index] = part(value)
    return ".".join(parts)


def test_forged_tokens_are_refused_alike(service: Service, provider: Provider) -> None:
    assert me(service, provider.token()).status_code == 200
    nothing = service.client.get("/v1/me")
    before = service("root", "GET", "/v1/users").json()
    for name, forge in FORGED.items():
        reply = me(service, forge(provider))
        assert reply.status_code == 401, name
        problem, expected = reply.json(), nothing.json()
        assert problem | {"request_id": ""} == expected | {"request_id": ""}, name
        per_request = {"x-request-id", "date"}
        assert {k: v for k, v in reply.headers.items() if k not in per_request} == {
            k: v for k, v in nothing.headers.items() if k not in per_request
        }, name
    assert service("root", "GET", "/v1/users").json() == before
    # Only the first valid token made the service fetch the signing keys. Forged tokens caused no
    # request to the provider.
    assert provider.paths == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_a_good_token_is_a_person(service: Service, provider: Provider, algorithm: str) -> None:
    reply = me(service, provider.token(algorithm))
    assert reply.status_code == 200, reply.text
    name = reply.json()["name"]
    assert reply.json() == {"name": name, "roles": ["analyst"]}
    assert name.startswith("auth0-ana.")
    again = me(service, provider.token(algorithm, aud=["x", AUDIENCE], jti="2", preferred="root"))
    assert again.json() == reply.json()
    for kind in ("at+jwt", "application/at+jwt", "AT+JWT", "JWT", None):
        headers = {"jku": f"{provider.issuer}/evil", "typ": kind}
        assert me(service, provider.token(algorithm, header=headers)).json() == reply.json()
    assert "/evil" not in provider.paths


def test_a_query_is_paid_and_answered(service: Service, provider: Provider) -> None:
    name = me(service, provider.token()).json()["name"]
    service.user("olga", "owner")
    service.dataset("olga")
    body = {
        "dataset": "triangle",
        "epsilon": "0.5",
        "query": {
            "kind": "selection",
            "candidates": {"nodes": "all"},
            "utilities": [{"name": "degree"}],
        },
    }
    ask = {"method": "POST", "path": "/v1/queries", "json": body}
    # The user has no allowance for the dataset yet, so the dataset does not exist for this user.
    assert me(service, provider.token(), **ask).status_code == 404
    assert service.grant("olga", "triangle", name).status_code == 200
    reply = me(service, provider.token(), **ask)
    assert reply.status_code == 201, reply.text
    assert reply.json()["remaining"] == {"epsilon": "0.5", "delta": "0"}
    # A token with another subject, or with this subject and another issuer, is of another user.
    other = me(service, provider.token(sub="auth0|bo"), "/v1/queries")
    assert other.json()["items"] == []


def test_roles_are_those_of_the_token(service: Service, provider: Provider) -> None:
    then = now() - 100
    name = me(service, provider.token(iat=then)).json()["name"]
    both = provider.token(roles="privypurse-owner openid privypurse-auditor", iat=then + 10)
    assert me(service, both).json()["roles"] == ["auditor", "owner"]
    assert me(service, provider.token(iat=then), "/v1/audit").status_code == 403
    assert me(service, both, "/v1/audit").status_code == 200

    def stored_roles() -> Any:
        users = service("root", "GET", "/v1/users").json()["items"]
        return next(user["roles"] for user in users if user["name"] == name)

    # The roles of a user are those in the latest issued token, in whatever order tokens are used.
    assert stored_roles() == ["auditor", "owner"]
    for others in ([], ["analyst", "admin", "Privypurse-Admin", 7, None]):
        assert me(service, provider.token(roles=others)).status_code == 401
    assert stored_roles() == []
    assert me(service, both).status_code == 200
    assert stored_roles() == []


def test_who_is_disabled_is_refused(service: Service, provider: Provider) -> None:
    name = me(service, provider.token()).json()["name"]

    def disable(state: bool) -> None:
        changed = service("root", "PATCH", f"/v1/users/{name}", json={"disabled": state})
        assert changed.status_code == 200

    disable(True)
    for token in (provider.token(), provider.token(iat=now() - 50), provider.token(iat=now() + 1)):
        assert me(service, token).status_code == 401
    disable(False)
    assert me(service, provider.token()).status_code == 200


def test_the_provider_alone_gives_roles_and_there_are_no_keys(
    service: Service, provider: Provider
) -> None:
    name = me(service, provider.token(roles=["privypurse-admin"])).json()["name"]
    token = provider.token(roles=["privypurse-admin"])
    for reply in (
        service("root", "PATCH", f"/v1/users/{name}", json={"roles": ["owner"]}),
        service("root", "POST", f"/v1/users/{name}/keys"),
        me(service, token, f"/v1/users/{name}/keys", method="POST"),
    ):
        assert (reply.status_code, reply.json()["type"]) == (409, "/problems/managed-elsewhere")
    # An admin who signs in by token does not count as an admin with a key. So the last admin with a
    # key cannot be disabled.
    last = me(service, token, "/v1/users/admin", method="PATCH", json={"disabled": True})
    assert (last.status_code, last.json()["type"]) == (409, "/problems/last-admin")


def test_a_taken_name_is_nobody_elses(service: Service, provider: Provider) -> None:
    name = me(service, provider.token()).json()["name"]
    again = create_app(service.settings.model_copy(update={"data": service.settings.data / "2"}))
    with TestClient(again) as client:
        other = Service(client, again.state.services.settings)
        other.user(name, "analyst")
        long = me(other, provider.token()).json()["name"]
        assert long.startswith(name)
        assert long != name


def test_many_first_requests_make_one_user(service: Service, provider: Provider) -> None:
    tokens = [provider.token(iat=now() - i) for i in range(16)]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda token: me(service, token), tokens))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["name"] for reply in replies}) == 1
    assert len(service("root", "GET", "/v1/users").json()["items"]) == 2


def test_a_flood_of_unknown_keys_fetches_once(service: Service, provider: Provider) -> None:
    provider.delay = 0.2
    flood = [provider.token(header={"kid": f"unknown {i}"}) for i in range(200)]
    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(lambda token: me(service, token).status_code, flood))
    assert statuses == [401] * 200
    assert provider.paths.count("/keys") == 1
    assert me(service, provider.token()).status_code == 200
    assert provider.paths.count("/keys") == 1


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(application: FastAPI, service: Service, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    tokens = application.state.services.tokens
    monkeypatch.setattr(tokens._keys._published, "_clock", clock)
    del service
    return clock


def test_keys_come_and_go(service: Service, provider: Provider, clock: Clock) -> None:
    old = {"keys": [public("ES256")]}
    provider.keys = old
    assert me(service, provider.token()).status_code == 401
    provider.keys = {"keys": [public("RS256")]}
    clock.now += published.BETWEEN - 1
    # Signing keys are fetched at most once a minute.
    assert me(service, provider.token()).status_code == 401
    clock.now += 2
    assert me(service, provider.token()).status_code == 200
    # The service no longer accepts a signing key that the provider has withdrawn.
    assert me(service, provider.token("ES256")).status_code == 401
    provider.keys = old
    clock.now += published.FRESH + 1
    assert me(service, provider.token()).status_code == 401
    assert me(service, provider.token("ES256")).status_code == 200
    assert provider.paths.count("/keys") == 3


BROKEN: dict[str, dict[str, Any]] = {
    "error": {"status": 500},
    "redirection": {"status": 302},
    "no JSON": {"keys": b"<html>"},
    "depth": {"keys": b"[" * 100_000},
    "no keys": {"keys": {}},
    "keys of another kind": {"keys": {"keys": "x"}},
    "nothing usable": {"keys": {"keys": [1, {}, {"kty": "RSA", "kid": "rs256", "n": "!"}]}},
    "a shared secret": {"keys": {"keys": [{"kty": "oct", "kid": "rs256", "k": "AAAA"}]}},
    "for encryption": {"keys": {"keys": [{**public("RS256"), "use": "enc"}]}},
    "huge": {"keys": b" " * 300_000 + json.dumps({"keys": [public("RS256")]}).encode()},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_provider_is_a_refusal(
    service: Service,
    provider: Provider,
    clock: Clock,
    broken: str,
) -> None:
    good = provider.keys
    vars(provider).update(BROKEN[broken])
    assert me(service, provider.token()).status_code == 401
    vars(provider).update(status=200, keys=good)
    clock.now += published.BETWEEN + 1
    assert me(service, provider.token()).status_code == 200
    # While the provider is down, its cached signing keys are trusted for a limited time.
    vars(provider).update(status=500)
    clock.now += published.FRESH + 1
    with capture_logs() as lines:
        assert me(service, provider.token()).status_code == 200
    assert any("were not fetched" in line["event"] for line in lines)
    clock.now += published.BELIEVED
    assert me(service, provider.token()).status_code == 401
    clock.now += published.BETWEEN + 1
    vars(provider).update(status=200)
    assert me(service, provider.token()).status_code == 200


def test_a_slow_provider_holds_nobody_else_up(
    service: Service, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "PATIENCE", 6.0)
    provider.delay = 6.5
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(me, service, provider.token()) for _ in range(6)]
        assert service("root", "GET", "/v1/me").status_code == 200
        assert not any(reply.done() for reply in waiting)
        assert [reply.result().status_code for reply in waiting] == [401] * 6


def test_the_description_must_be_the_issuers_own(
    service: Service, provider: Provider, clock: Clock
) -> None:
    issuer, provider.issuer = provider.issuer, "https://evil.example"
    token = provider.token(iss=issuer)
    assert me(service, token).status_code == 401
    provider.issuer, good = issuer, provider.jwks_url
    for bad in ("http://keys.example/", "file:///etc/passwd", "", "http://[", None):
        clock.now += published.BETWEEN + 1
        provider.jwks_url = bad  # type: ignore[assignment]
        assert me(service, token).status_code == 401
    clock.now += published.BETWEEN + 1
    provider.jwks_url = good
    assert me(service, token).status_code == 200


def test_a_token_opens_the_api_and_nothing_else(service: Service, provider: Provider) -> None:
    token = provider.token()
    session = {"cookie": f"__Host-privypurse={token}", "authorization": f"Bearer {token}"}
    page = service.client.get("/ui/keys", headers=session, follow_redirects=False)
    assert page.headers["location"].startswith("/ui/sign-in")
    assert me(service, token, "/metrics").status_code == 404


@pytest.mark.parametrize("role", ["admin", "owner", "analyst", "auditor"])
def test_every_route_admits_the_roles_of_a_token(
    service: Service, provider: Provider, role: str
) -> None:
    token = provider.token(roles=[f"privypurse-{role}"])
    for name, who in CONTRACT.items():
        method, path = name.split()
        path = path.format(
            **dict.fromkeys(("name", "id", "user", "dataset", "slug"), "absent"),
            query_id="00000000-0000-0000-0000-000000000000",
        )
        status = me(service, token, path, method=method).status_code
        assert (status == 403) == (who not in ("", "key") and role not in who.split()), name
        assert status != 401, name
        assert status < 500, name


def test_another_claim_and_another_mapping(settings: Settings, provider: Provider) -> None:
    for claim, claims in (
        ("realm_access.roles", {"realm_access": {"roles": ["boss"]}}),
        ("https://a.example/roles", {"https://a.example/roles": "boss"}),
    ):
        update = {
            "oidc_roles_claim": claim,
            "oidc_roles": {"boss": "owner"},
            "oidc_jwks_url": provider.jwks_url,
        }
        with TestClient(create_app(settings.model_copy(update=update))) as client:
            service = Service(client, settings)
            assert me(service, provider.token(**claims)).json()["roles"] == ["owner"]
            for other in ({claim: ["boss"]}, {"realm_access": "boss"}, {"realm_access": {}}):
                if "/" not in claim:
                    assert me(service, provider.token(**other)).status_code == 401
            assert me(service, provider.token()).status_code == 401
    assert "/.well-known/openid-configuration" not in provider.paths


def test_off_by_default(tmp_path: Any, provider: Provider) -> None:
    settings = Settings(data=tmp_path / "off", release_interval=0)
    assert settings.openid() is None
    with TestClient(create_app(settings)) as client:
        assert me(Service(client, settings), provider.token()).status_code == 401
    assert provider.paths == []


GOOD = {"oidc_issuer": "https://id.example/realm", "oidc_audience": "purse"}


@pytest.mark.parametrize(
    "bad",
    [
        {"oidc_algorithms": "HS256"},
        {"oidc_algorithms": "RS256,none"},
        {"oidc_algorithms": "RS256, HS512"},
        {"oidc_algorithms": "none"},
        {"oidc_algorithms": ""},
        {"oidc_algorithms": ()},
        {"oidc_audience": None},
        {"oidc_issuer": None},
        {"oidc_audience": ""},
        {"oidc_issuer": "http://id.example"},
        {"oidc_jwks_url": "http://id.example/keys"},
        {"oidc_jwks_url": "file:///etc/passwd"},
        {"oidc_jwks_url": "http://[::1"},
        {"oidc_roles": {"boss": "root"}},
    ],
)
def test_settings_that_cannot_be_meant(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**{**GOOD, **bad})


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "ISSUER": "https://id.example",
        "AUDIENCE": "purse",
        "ALGORITHMS": "RS256, EdDSA",
        "ROLES": '{"a": "admin"}',
        "ROLES_CLAIM": "groups",
    }.items():
        monkeypatch.setenv(f"PURSE_OIDC_{name}", value)
    openid = Settings().openid()
    assert openid is not None
    assert (openid.algorithms, openid.roles) == (("RS256", "EdDSA"), {"a": "admin"})
    assert (openid.roles_claim, openid.jwks_url) == ("groups", None)
