"""An OpenID provider with the device flow on this machine, made of the server of Authlib.

Codes, polling, refresh tokens and their rotation are those of the library; the access tokens are
signed by the keys of ``tests.support.provider``, and hold the roles of their person.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from typing import Any, ClassVar, Self

import flask
import jwt
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, RefreshTokenGrant, TokenMixin
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc8628 import (
    DEVICE_CODE_GRANT_TYPE,
    DeviceAuthorizationEndpoint,
    DeviceCodeGrant,
    DeviceCredentialDict,
)
from werkzeug.serving import make_server

from tests.support.provider import AUDIENCE, PRIVATE, public

CLIENT = "command-line"


class Client(ClientMixin):  # type: ignore[misc]
    """The one public client."""

    def get_client_id(self) -> str:
        return CLIENT

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in (DEVICE_CODE_GRANT_TYPE, "refresh_token")

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        del endpoint
        return method == "none"


class Token(dict[str, Any], TokenMixin):  # type: ignore[misc]
    """A stored pair of tokens."""

    def check_client(self, client: Client) -> bool:
        return client.get_client_id() == CLIENT

    def get_scope(self) -> str:
        return str(self["scope"])

    def get_expires_in(self) -> int:
        return int(self["expires_in"])

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return bool(self.get("revoked"))


class DeviceProvider:
    """``life``: seconds of an access token. ``answers``: user code → person, or None who refuses.

    ``begun`` and ``forms`` list what came to the endpoints of devices and of tokens, and
    ``metadata`` replaces parts of the description.
    """

    def __init__(self) -> None:
        # The provider speaks plain HTTP on this machine, which the library authlib refuses by
        # default.
        os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
        self.life, self.interval, self.slow_downs = 3600, 0.05, 0
        self.answers: dict[str, str | None] = {}
        self.roles: dict[str, list[str]] = {}
        self.forms: list[dict[str, str]] = []
        self.begun: list[dict[str, str]] = []
        self.tokens: list[Token] = []
        self.metadata: dict[str, Any] = {}
        self._credentials: dict[str, DeviceCredentialDict] = {}
        app = flask.Flask(__name__)
        self._routes(app, self._authorization(app))
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _access_token(self, user: str, **_: Any) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": user, "iat": now}
        roles = [f"privypurse-{role}" for role in self.roles.get(user, [])]
        claims |= {"exp": now + self.life, "roles": roles, "jti": str(len(self.tokens))}
        return jwt.encode(claims, PRIVATE["RS256"], "RS256", {"kid": "rs256"})

    def _authorization(self, app: flask.Flask) -> AuthorizationServer:
        provider = self

        def save_token(token: dict[str, Any], request: Any) -> None:
            token["expires_in"] = provider.life
            provider.tokens.append(Token(token, user=request.user))

        def find(refresh_token: str) -> Token | None:
            tokens = (one for one in provider.tokens if one.get("refresh_token") == refresh_token)
            return next(tokens, None)

        class Device(DeviceCodeGrant):  # type: ignore[misc]
            TOKEN_ENDPOINT_AUTH_METHODS: ClassVar[list[str]] = ["none"]

            def query_device_credential(self, device_code: str) -> Any:
                return provider._credentials.get(device_code)

            def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
                if user_code not in provider.answers:
                    return None
                user = provider.answers[user_code]
                return user or "", user is not None

            def should_slow_down(self, credential: Any) -> bool:
                del credential
                provider.slow_downs -= 1
                return provider.slow_downs >= 0

        class Refresh(RefreshTokenGrant):  # type: ignore[misc]
            TOKEN_ENDPOINT_AUTH_METHODS: ClassVar[list[str]] = ["none"]
            INCLUDE_NEW_REFRESH_TOKEN = True

            def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
                token = find(refresh_token)
                return None if token is None or token.is_revoked() else token

            def authenticate_user(self, refresh_token: Token) -> str:
                return str(refresh_token["user"])

            def revoke_old_credential(self, refresh_token: Token) -> None:
                refresh_token["revoked"] = True

        class Begin(DeviceAuthorizationEndpoint):  # type: ignore[misc]
            def get_verification_uri(self) -> str:
                return f"{provider.issuer}/activate"

            def save_device_credential(self, client_id: str, scope: str, data: Any) -> None:
                data["interval"] = provider.interval
                stored = DeviceCredentialDict(
                    client_id=client_id, scope=scope, expires_at=time.time() + 60, **data
                )
                provider._credentials[data["device_code"]] = stored

        class Revoke(RevocationEndpoint):  # type: ignore[misc]
            CLIENT_AUTH_METHODS: ClassVar[list[str]] = ["none"]

            def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
                del token_type_hint
                return find(token_string)

            def revoke_token(self, token: Token, request: Any) -> None:
                del request
                token["revoked"] = True

        app.config["OAUTH2_ACCESS_TOKEN_GENERATOR"] = self._access_token
        app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
        server = AuthorizationServer(
            app, query_client=lambda id: Client() if id == CLIENT else None, save_token=save_token
        )
        for grant in (Device, Refresh):
            server.register_grant(grant)
        for endpoint in (Begin, Revoke):
            server.register_endpoint(endpoint)
        return server

    def _routes(self, app: flask.Flask, server: AuthorizationServer) -> None:
        @app.get("/.well-known/openid-configuration")
        def described() -> Any:
            return {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint": f"{self.issuer}/token",
                "device_authorization_endpoint": f"{self.issuer}/device",
                "revocation_endpoint": f"{self.issuer}/revoke",
            } | self.metadata

        @app.get("/keys")
        def keys() -> Any:
            return {"keys": [public("RS256")]}

        @app.post("/device")
        def device() -> Any:
            self.begun.append(flask.request.form.to_dict())
            return server.create_endpoint_response("device_authorization")

        @app.post("/token")
        def token() -> Any:
            self.forms.append(flask.request.form.to_dict())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return server.create_token_response()

        @app.post("/revoke")
        def revoke() -> Any:
            return server.create_endpoint_response("revocation")
