"""Signing in from a terminal or a notebook by an OpenID provider: the device flow of RFC 8628.

The person opens an address of the provider in any browser and types a code; this program polls
until they have agreed. The tokens stay in a file that only this user of the machine may read, and
go to no service but the one that they were stored for.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from privypurse.problems import PurseError

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
#: The part ``offline_access`` of the scope requests a refresh token.
SCOPE = "openid offline_access"
#: Seconds for one reply of the provider.
TIMEOUT = 10.0
#: Seconds between two polls unless the provider says otherwise, and what ``slow_down`` adds.
INTERVAL = 5.0
#: An access token is refreshed this many seconds before it expires, or after nine tenths of its
#: life if that is later.
EARLY = 60.0
#: Of the replies that blame the request, those that may pass by themselves: a timeout, and a limit
#: of requests.
AWAY = (408, 429)
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")


class LoginFailed(PurseError):
    """The provider signed nobody in, or no longer renews the tokens: sign in again."""


class _NoReply(LoginFailed):
    """The provider is away, perhaps for a moment only."""


@dataclass(frozen=True)
class Prompt:
    """What the person does: open ``address``, type ``code``. ``complete`` holds the code already.

    ``seconds``: how long the code is valid.
    """

    address: str
    code: str
    complete: str | None
    seconds: float


@dataclass(frozen=True)
class _Tokens:
    """What is stored for one service. Times are in seconds since 1970."""

    issuer: str
    client_id: str
    token_endpoint: str
    revocation_endpoint: str | None
    access_token: str
    refresh_token: str | None
    refresh_at: float
    expires_at: float

    def renewed(self, reply: Mapping[str, Any]) -> _Tokens:
        """These, with the tokens of a reply; it may keep the refresh token. Raises: LoginFailed."""
        access, refresh = reply.get("access_token"), reply.get("refresh_token")
        life = reply.get("expires_in", 3600)
        if not isinstance(access, str) or not isinstance(life, int | float):
            raise LoginFailed("the provider sent no access token")
        expires_at = time.time() + life
        return replace(
            self,
            access_token=access,
            refresh_token=refresh if isinstance(refresh, str) else self.refresh_token,
            refresh_at=expires_at - min(EARLY, life / 10),
            expires_at=expires_at,
        )


class Login(httpx.Auth):
    """The person who signed in on this machine for the service at ``url``.

    ``PrivyPurse(url, Login(url))`` uses it in place of a key. Access tokens are renewed before they
    expire, so a notebook outlives them. Threads and processes may share one file. Raises:
    LoginFailed if nobody has signed in.
    """

    def __init__(self, url: str, file: Path | None = None) -> None:
        self._url, self._file = url.rstrip("/"), file or default_file()
        self._tokens = self._read()
        self._lock = threading.Lock()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Adds the token to a request to the service, and to no other."""
        here, there = httpx.URL(self._url), request.url
        if (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port):
            request.headers["Authorization"] = f"Bearer {self.token()}"
        yield request

    def token(self) -> str:
        """An access token that has not expired. Raises: LoginFailed.

        While the provider is away, it is the old token until that expires.
        """
        with self._lock:
            if time.time() >= self._tokens.refresh_at:
                try:
                    self._renew()
                except _NoReply:
                    now, expires_at = time.time(), self._tokens.expires_at
                    if now >= expires_at:
                        raise
                    # The next attempt to refresh waits a few seconds. Otherwise every call would
                    # wait for the provider.
                    again = min(now + INTERVAL, expires_at)
                    self._tokens = replace(self._tokens, refresh_at=again)
            return self._tokens.access_token

    def end(self) -> None:
        """Revoke the tokens at the provider, if it can, and forget them here."""
        with _locked(self._file):
            tokens, stored = self._read(), _stored(self._file)
            del stored[self._url]
            _store(self._file, stored)
        if tokens.revocation_endpoint is not None:
            form = {"token": tokens.refresh_token or tokens.access_token}
            with _http() as http:
                _post(http, tokens.revocation_endpoint, {**form, "client_id": tokens.client_id})

    def _read(self) -> _Tokens:
        try:
            return _Tokens(**_stored(self._file)[self._url])
        except (KeyError, TypeError):
            raise LoginFailed(f"nobody has signed in to {self._url}: privypurse login") from None

    def _renew(self) -> None:
        # A provider may replace a refresh token when it is used. So only one process at a time
        # refreshes, and the others read the new tokens.
        with _locked(self._file):
            self._tokens = self._read()
            if time.time() < self._tokens.refresh_at:
                return
            if self._tokens.refresh_token is None:
                raise LoginFailed("the sign-in has expired: privypurse login")
            form = {"grant_type": "refresh_token", "refresh_token": self._tokens.refresh_token}
            with _http() as http:
                status, reply = _post(
                    http,
                    self._tokens.token_endpoint,
                    {**form, "client_id": self._tokens.client_id},
                )
            if status in AWAY:
                raise _NoReply("the provider does not answer")
            if status != 200:
                raise LoginFailed("the provider does not renew the sign-in: privypurse login")
            self._tokens = self._tokens.renewed(reply)
            _store(self._file, {**_stored(self._file), self._url: asdict(self._tokens)})

    def __repr__(self) -> str:
        # The ``repr`` omits the tokens, because a shared notebook may contain it.
        return f"Login({self._url!r})"


def login(
    url: str,
    issuer: str,
    client_id: str,
    *,
    show: Callable[[Prompt], None],
    scope: str = SCOPE,
    audience: str | None = None,
    file: Path | None = None,
) -> Login:
    """Sign a person in to the service at ``url``, and store the tokens.

    Args:
        issuer: the address of the provider, to the letter.
        client_id: the id of this program there, a public client with the device flow.
        show: called once with what the person must do.
        audience: sent as ``audience``, for providers that issue tokens for a service only then.
        file: where tokens are stored; ``default_file()`` unless given.

    Raises: LoginFailed if the person refuses, the code expires, or the provider cannot do it.
    """
    with _http() as http:
        described = _described(http, issuer)
        form = {"client_id": client_id, "scope": scope}
        if audience is not None:
            form["audience"] = audience
        status, reply = _post(http, described["device_authorization_endpoint"], form)
        if status != 200:
            raise LoginFailed(f"the provider refused to begin: {_reason(reply)}")
        prompt, interval = _prompt(reply), reply.get("interval")
        if not isinstance(interval, int | float) or not interval > 0:
            interval = INTERVAL
        show(prompt)
        form = {"grant_type": DEVICE_CODE, "device_code": str(reply.get("device_code"))}
        granted = _polled(
            http,
            described["token_endpoint"],
            {**form, "client_id": client_id},
            interval,
            prompt.seconds,
        )
    endpoints = described["token_endpoint"], described.get("revocation_endpoint")
    tokens = _Tokens(issuer, client_id, *endpoints, "", None, 0.0, 0.0).renewed(granted)
    file = file or default_file()
    with _locked(file):
        _store(file, {**_stored(file), url.rstrip("/"): asdict(tokens)})
    return Login(url, file)


def default_file() -> Path:
    """The file of tokens: ``privypurse/tokens.json`` in the folder of settings of this user."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(
        "privypurse", "tokens.json"
    )


def _described(http: httpx.Client, issuer: str) -> dict[str, Any]:
    """The provider's description of itself. Raises: LoginFailed unless it is safe and complete."""
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    _require_safe(address)
    try:
        described = http.get(address, headers={"Accept": "application/json"}).json()
    except (httpx.HTTPError, ValueError):
        raise LoginFailed(f"no provider answers at {issuer}") from None
    if not isinstance(described, dict) or described.get("issuer") != issuer:
        raise LoginFailed(f"what answers at {issuer} names another issuer")
    for name in ("device_authorization_endpoint", "token_endpoint"):
        if not isinstance(described.get(name), str):
            raise LoginFailed("the provider has no device flow")
        _require_safe(described[name])
    if described.get("revocation_endpoint") is not None:
        _require_safe(str(described["revocation_endpoint"]))
    return described


def _polled(
    http: httpx.Client, address: str, form: Mapping[str, str], interval: float, seconds: float
) -> Mapping[str, Any]:
    """The tokens, once the person has agreed. Raises: LoginFailed."""
    end = time.monotonic() + seconds
    while time.monotonic() + interval < end:
        time.sleep(interval)
        try:
            status, reply = _post(http, address, form)
        except LoginFailed:
            interval *= 2  # RFC 8628, 3.5, demands slower polls after a lost connection.
            continue
        error = reply.get("error")
        if status == 200:
            return reply
        if error == "slow_down":
            interval += INTERVAL
        elif error != "authorization_pending":
            raise LoginFailed(f"the provider signed nobody in: {_reason(reply)}")
    raise LoginFailed("nobody agreed in time: privypurse login")


def _prompt(reply: Mapping[str, Any]) -> Prompt:
    """What to show. Raises: LoginFailed for a text that could draw on a terminal."""
    address, code = reply.get("verification_uri"), reply.get("user_code")
    complete, seconds = reply.get("verification_uri_complete"), reply.get("expires_in")
    texts = [text for text in (address, code, complete) if text is not None]
    if not all(isinstance(text, str) and text.isascii() and text.isprintable() for text in texts):
        raise LoginFailed("the provider sent an address or a code that cannot be shown")
    if len(texts) < 2 or not isinstance(seconds, int | float):
        raise LoginFailed("the provider sent no code")
    return Prompt(str(address), str(code), complete, float(seconds))


def _post(
    http: httpx.Client, address: str, form: Mapping[str, str]
) -> tuple[int, Mapping[str, Any]]:
    """The status and the JSON object of a reply, empty if there is none. Raises: _NoReply."""
    try:
        reply = http.post(address, data=dict(form), headers={"Accept": "application/json"})
    except httpx.HTTPError:
        raise _NoReply("the provider does not answer") from None
    if reply.is_server_error:
        raise _NoReply("the provider does not answer")
    try:
        content = reply.json()
    except ValueError:
        content = {}
    return reply.status_code, content if isinstance(content, dict) else {}


def _reason(reply: Mapping[str, Any]) -> str:
    """The error of the provider, if it is one word as RFC 6749 says."""
    error = str(reply.get("error", ""))
    return error if error.replace("_", "").isalnum() and error.isascii() else "no reason given"


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS):
        return
    raise LoginFailed("a provider is spoken to over https, or on this machine itself")


def _http() -> httpx.Client:
    return httpx.Client(timeout=TIMEOUT, follow_redirects=False)


def _stored(file: Path) -> dict[str, Any]:
    """The stored tokens by address of the service. Raises: LoginFailed for a damaged file."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise LoginFailed(f"{file} is damaged: delete it and sign in again")
    return content


def _store(file: Path, content: Mapping[str, Any]) -> None:
    """Replace the file, which only this user may read from its first byte on."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        os.fchmod(out.fileno(), 0o600)
        json.dump(content, out)
    temporary.replace(file)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One process at a time, until the block ends."""
    # Imported here, because ``fcntl`` does not exist on every system, and only sign-ins need it.
    import fcntl

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.with_name(f".{file.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
