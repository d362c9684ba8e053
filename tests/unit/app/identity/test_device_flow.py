"""Signing in from a terminal by a real provider: the device flow, renewal, and what is refused."""

from __future__ import annotations

import json
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.demo.service import free_port
from app.main import create_app
from privypurse import Login, LoginFailed, PrivyPurse, Prompt, login
from privypurse.cli import cli
from tests.support.device_provider import CLIENT, DeviceProvider
from tests.support.patience import until
from tests.support.provider import AUDIENCE
from tests.support.service import Service, settings_on

URL = "http://purse.example"


@pytest.fixture(scope="module")
def running() -> Iterator[DeviceProvider]:
    with DeviceProvider() as provider:
        yield provider


@pytest.fixture
def provider(running: DeviceProvider) -> DeviceProvider:
    running.life, running.interval, running.slow_downs = 3600, 0.05, 0
    running.metadata, running.forms, running.begun, running.tokens = {}, [], [], []
    running.roles = {"ana": ["analyst"]}
    return running


@pytest.fixture(scope="module")
def service(
    running: DeviceProvider,
    begun: tuple[Path, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    settings = settings_on(tmp_path_factory.mktemp("device") / "data").model_copy(
        update={"oidc_issuer": running.issuer, "oidc_audience": AUDIENCE}
    )
    shutil.copytree(begun[0], settings.data)
    with TestClient(create_app(settings), base_url=URL) as client:
        service = Service(client, settings)
        service.keys = dict(begun[1])
        yield service


class Through(httpx.BaseTransport):
    """Carries requests of the client to the service in this process."""

    def __init__(self, service: Service) -> None:
        self._client = service.client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        headers = dict(request.headers)
        reply = self._client.request(request.method, path, headers=headers, content=request.read())
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


class Clock:
    """The clock of the client: its time stands still, and its pauses are short."""

    def __init__(self) -> None:
        self.now, self.pauses = time.time(), list[float]()
        self.monotonic = time.monotonic

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        time.sleep(min(seconds, 0.02))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    # Only the client module gets this clock. The service and the provider keep the true time.
    monkeypatch.setattr("privypurse.device_flow.time", clock)
    return clock


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "tokens.json"


def agreeing(provider: DeviceProvider, who: str | None = "ana") -> Callable[[Prompt], None]:
    """A person who answers the prompt after two looks of the program."""

    def answer(code: str, looks: int) -> None:
        until(lambda: len(provider.forms) >= looks)
        provider.answers[code] = who

    def show(prompt: Prompt) -> None:
        assert prompt.address == f"{provider.issuer}/activate"
        assert prompt.complete == f"{prompt.address}?user_code={prompt.code}"
        looks = len(provider.forms) + 2
        threading.Thread(target=answer, args=(prompt.code, looks), daemon=True).start()

    return show


def signed_in(provider: DeviceProvider, file: Path, who: str = "ana", **options: Any) -> Login:
    show = agreeing(provider, who)
    return login(URL, provider.issuer, CLIENT, show=show, file=file, **options)


def test_a_person_signs_in_and_asks(provider: DeviceProvider, service: Service, file: Path) -> None:
    person = signed_in(provider, file, audience=AUDIENCE)
    assert len(provider.forms) > 1  # The client polled until the person agreed.
    with PrivyPurse(URL, person, transport=Through(service)) as purse:
        me = purse.me()
    assert (me.name.startswith("ana."), me.roles) == (True, ["analyst"])
    (form,) = provider.begun
    assert form == {
        "client_id": CLIENT,
        "scope": "openid offline_access",
        "audience": AUDIENCE,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    secret = json.loads(file.read_text())[URL]["access_token"]
    assert secret not in repr(person)
    # Another program on this machine reads the token from the file, without asking the provider.
    assert Login(URL, file).token() == secret


def test_a_notebook_outlives_its_token(
    provider: DeviceProvider, service: Service, file: Path, clock: Clock
) -> None:
    notebook = PrivyPurse(URL, signed_in(provider, file), transport=Through(service))
    name = notebook.me().name
    for renewals in (1, 2):
        clock.now += 3500
        assert notebook.me().name == name
        assert len(provider.tokens) == renewals
        clock.now += 50  # The token expires in less than a minute, so it is renewed.
        assert notebook.me().name == name
        assert [form["grant_type"] for form in provider.forms].count("refresh_token") == renewals
        # The provider replaced the refresh token, and the new one is stored.
        stored, issued = json.loads(file.read_text())[URL], provider.tokens[renewals]
        for part in ("access_token", "refresh_token"):
            assert stored[part] == issued[part]


def test_many_threads_and_programs_renew_once(
    provider: DeviceProvider, file: Path, clock: Clock
) -> None:
    people = [signed_in(provider, file), Login(URL, file), Login(URL, file)]
    clock.now += 3600
    with ThreadPoolExecutor(12) as threads:
        tokens = set(threads.map(lambda number: people[number % 3].token(), range(60)))
    assert tokens == {provider.tokens[1]["access_token"]}
    assert [form["grant_type"] for form in provider.forms].count("refresh_token") == 1


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError("away"), httpx.Response(503), httpx.Response(429)]
)
def test_a_token_is_used_until_it_expires_while_the_provider_is_away(
    provider: DeviceProvider,
    file: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    failure: httpx.ConnectError | httpx.Response,
) -> None:
    person = signed_in(provider, file)
    first, attempts = person.token(), []

    def reply(request: httpx.Request) -> httpx.Response:
        attempts.append(request)
        if isinstance(failure, httpx.Response):
            return failure
        raise failure

    with monkeypatch.context() as away:
        transport = httpx.MockTransport(reply)
        away.setattr("privypurse.device_flow._http", lambda: httpx.Client(transport=transport))
        clock.now += 3550
        assert {person.token() for _ in range(3)} == {first}
        assert len(attempts) == 1
        clock.now += 49
        assert person.token() == first
        assert len(attempts) == 2
        clock.now += 1
        with pytest.raises(LoginFailed, match="does not answer"):
            person.token()
    assert person.token() == provider.tokens[1]["access_token"]


def test_a_login_that_the_provider_ends_is_refused(provider: DeviceProvider, file: Path) -> None:
    provider.life = 0
    person = signed_in(provider, file)
    provider.tokens[0]["revoked"] = True
    with pytest.raises(LoginFailed, match="privypurse login"):
        person.token()


def test_signing_out_revokes_and_forgets(provider: DeviceProvider, file: Path) -> None:
    signed_in(provider, file).end()
    assert provider.tokens[0]["revoked"]
    assert json.loads(file.read_text()) == {}
    with pytest.raises(LoginFailed, match="nobody has signed in"):
        Login(URL, file)


def test_a_token_goes_to_its_service_alone(provider: DeviceProvider, file: Path) -> None:
    person = signed_in(provider, file)
    seen = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200, json={})

    for url in (URL, f"{URL}:80", "http://elsewhere.example", f"{URL}.elsewhere.example"):
        httpx.Client(auth=person, transport=httpx.MockTransport(reply)).get(f"{url}/v1/me")
    assert [one is not None for one in seen] == [True, True, False, False]


def test_who_refuses_is_not_signed_in(provider: DeviceProvider, file: Path) -> None:
    with pytest.raises(LoginFailed, match="access_denied"):
        login(URL, provider.issuer, CLIENT, show=agreeing(provider, None), file=file)
    assert not file.exists()


def test_it_polls_slower_when_the_provider_says_so(
    provider: DeviceProvider, file: Path, clock: Clock
) -> None:
    provider.slow_downs = 2
    signed_in(provider, file)
    assert clock.pauses[:3] == [0.05, 5.05, 10.05]


@pytest.mark.parametrize("interval", [None, "soon", -1, 0])
def test_an_interval_that_is_no_pause_is_ignored(
    provider: DeviceProvider, file: Path, clock: Clock, interval: Any
) -> None:
    provider.interval = interval
    signed_in(provider, file)
    assert set(clock.pauses) == {5.0}


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"issuer": "https://another.example"}, "names another issuer"),
        ({"device_authorization_endpoint": None}, "no device flow"),
        ({"token_endpoint": "http://elsewhere.example/token"}, "over https"),
        ({"device_authorization_endpoint": "http://10.0.0.1/device"}, "over https"),
        ({"revocation_endpoint": "http://10.0.0.1/revoke"}, "over https"),
    ],
)
def test_a_provider_that_is_not_safe_is_refused(
    provider: DeviceProvider, file: Path, metadata: dict[str, Any], says: str
) -> None:
    provider.metadata = metadata
    with pytest.raises(LoginFailed, match=says):
        login(URL, provider.issuer, CLIENT, show=agreeing(provider), file=file)
    assert provider.forms == []


@pytest.mark.parametrize("issuer", ["http://id.example", "file:///etc/passwd", "id.example"])
def test_a_provider_without_tls_is_refused(file: Path, issuer: str) -> None:
    with pytest.raises(LoginFailed, match="over https"):
        login(URL, issuer, CLIENT, show=lambda _: None, file=file)


def test_a_provider_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(LoginFailed, match="no provider answers"):
        login(URL, f"http://127.0.0.1:{free_port()}", CLIENT, show=lambda _: None, file=file)


def test_an_unknown_client_is_refused(provider: DeviceProvider, file: Path) -> None:
    with pytest.raises(LoginFailed, match="invalid_client"):
        login(URL, provider.issuer, "stranger", show=lambda _: None, file=file)


def test_a_damaged_file_says_what_to_do(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("{")
    with pytest.raises(LoginFailed, match="delete it"):
        Login(URL, file)


def test_the_commands_sign_in_and_out(
    provider: DeviceProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PRIVYPURSE_KEY", raising=False)
    monkeypatch.delenv("PRIVYPURSE_KEY_FILE", raising=False)
    transport = Through(service)
    for module in ("login", "service"):
        monkeypatch.setattr(
            f"privypurse.cli.{module}.PrivyPurse",
            lambda url, key: PrivyPurse(url, key, transport=transport),
        )

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["--url", URL, *words])
        return result.exit_code, result.output

    assert run("budgets") == (
        2,
        "no key: set PRIVYPURSE_KEY_FILE or PRIVYPURSE_KEY, or use privypurse login\n",
    )
    from privypurse.cli import login as command

    show = command._show

    def answered(prompt: Prompt) -> None:
        show(prompt)
        agreeing(provider)(prompt)

    monkeypatch.setattr(command, "_show", answered)
    status, output = run("login", "--issuer", provider.issuer, "--client-id", CLIENT)
    assert status == 0, output
    lines = output.splitlines()
    assert lines[0].startswith(f"Open {provider.issuer}/activate in a browser and type the code ")
    assert lines[-1].startswith(f"Signed in to {URL} as ana.")
    assert run("notices")[0] == 0
    assert run("logout") == (0, f"Signed out of {URL}.\n")
    status, output = run("notices")
    assert (status, output) == (1, f"nobody has signed in to {URL}: privypurse login\n")


def test_a_sign_in_that_the_service_refuses_is_forgotten(
    provider: DeviceProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"type": "/problems/unauthenticated", "title": "Not signed in"}
    refusal = httpx.Response(
        401, json=problem, headers={"content-type": "application/problem+json"}
    )
    refusing = httpx.MockTransport(lambda _: refusal)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("privypurse.cli.login._show", agreeing(provider))
    monkeypatch.setattr(
        "privypurse.cli.login.PrivyPurse", lambda url, key: PrivyPurse(url, key, transport=refusing)
    )
    command = ["--url", URL, "login", "--issuer", provider.issuer, "--client-id", CLIENT]
    result = CliRunner().invoke(cli, command)
    assert (result.exit_code, result.stderr) == (1, "Not signed in\n")
    assert json.loads((tmp_path / "privypurse" / "tokens.json").read_text()) == {}
    assert provider.tokens[0]["revoked"]
