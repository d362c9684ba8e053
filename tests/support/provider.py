"""An OpenID provider on this machine, with real keys and tokens; it records every request."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://purse.example"
PRIVATE = {
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public(algorithm: str, key: Any = None) -> dict[str, Any]:
    """A key as providers publish it; its id is the algorithm's name in small letters."""
    to_jwk: Any = jwt.get_algorithm_by_name(algorithm).to_jwk
    described: dict[str, Any] = to_jwk((key or PRIVATE[algorithm]).public_key(), as_dict=True)
    return {**described, "kid": algorithm.lower(), "use": "sig"}


class Provider:
    """Serves its keys and its description; ``paths`` lists the paths requested so far."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.keys: Any = {"keys": [public(algorithm) for algorithm in PRIVATE]}
        self.status, self.delay = 200, 0.0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.paths.append(self.path)
                time.sleep(provider.delay)
                content = provider.keys
                if self.path.endswith("openid-configuration"):
                    content = {"issuer": provider.issuer, "jwks_uri": provider.jwks_url}
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                redirected = provider.status == 302 and self.path != "/keys"
                self.send_response(200 if redirected else provider.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self.jwks_url = f"{self.issuer}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of a valid token of an analyst; a change to None omits the claim."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "auth0|ana",
            "iat": now,
            "exp": now + 600,
            "roles": ["privypurse-analyst"],
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self,
        algorithm: str = "RS256",
        key: Any = None,
        header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """A signed token, valid unless a claim, its key or its header is changed."""
        # jwt.encode refuses to sign some invalid claims that the service must reject.
        return jwt.PyJWS().encode(
            json.dumps(self.claims(**changes)).encode(),
            key if key is not None else PRIVATE[algorithm],
            algorithm,
            {"kid": algorithm.lower(), **(header or {})},
        )
